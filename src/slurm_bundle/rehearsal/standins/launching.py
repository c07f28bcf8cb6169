"""How many tasks a step has, on which nodes of its job, and what each is told."""

from slurm_bundle.rehearsal.standins.environment import job_variables, node_variables
from slurm_bundle.rehearsal.standins.getopt import Options
from slurm_bundle.rehearsal.standins.hostlist import compress, counts, expand, expand_counts
from slurm_bundle.rehearsal.standins.jobs import Job
from slurm_bundle.rehearsal.standins.place import StopError, complain
from slurm_bundle.rehearsal.standins.site import Site


class Layout:
    """The nodes of a step, and the tasks on each."""

    def __init__(self, nodes: list[str], tasks: list[int], cpus: int) -> None:
        self.nodes, self.tasks, self.cpus = nodes, tasks, cpus

    @property
    def count(self) -> int:
        return sum(self.tasks)

    def ranks(self) -> list[tuple[int, int, int]]:
        """Rank, index of its node, number on its node."""
        places = [(index, local) for index, tasks in enumerate(self.tasks) for local in range(tasks)]
        return [(rank, index, local) for rank, (index, local) in enumerate(places)]


def number(options: Options, name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdigit() or text == "0":
        raise StopError(1, f'srun: error: Invalid numeric value "{text}" for --{name}.')
    return int(text)


def plan_step(job: Job, options: Options, busy: set[str], *, quiet: bool = False) -> Layout:
    """Where the tasks go; `busy` are nodes that other steps hold, which are taken last. Warns unless it is `quiet`."""
    names, cpus = expand(job["nodelist"]), expand_counts(job["cpus_layout"])
    room = dict(zip(names, cpus, strict=True))
    warn = (lambda _: None) if quiet else complain
    tasks, nodes = number(options, "ntasks"), number(options, "nodes") or len(names)
    per_node, each = number(options, "ntasks-per-node"), number(options, "cpus-per-task") or 1
    if tasks is not None and nodes > tasks:
        warn(f"srun: Warning: can't run {tasks} processes on {nodes} nodes, setting nnodes to {tasks}")
        nodes = tasks
    if tasks is not None and per_node and -(-tasks // per_node) != nodes:
        warn(
            f"srun: Warning: can't honor --ntasks-per-node set to {per_node} which doesn't match the requested tasks "
            f"{tasks} with the number of requested nodes {nodes}. Ignoring --ntasks-per-node."
        )
        per_node = None
    if nodes > len(names):
        raise StopError(1, f"srun: error: Only allocated {len(names)} nodes asked for {nodes}")
    tasks = tasks or nodes * (per_node or 1)
    chosen = choose(names, nodes, options, busy)
    layout = spread(tasks, [room[name] for name in chosen], per_node, each)
    if sum(layout) < tasks and "overcommit" not in options:
        raise StopError(
            1, f"srun: error: Unable to create step for job {job.id}: More processors requested than permitted"
        )
    whole = sum(room[name] for name in chosen)
    return Layout(chosen, layout, tasks * each if "exact" in options else whole)


def choose(names: list[str], nodes: int, options: Options, busy: set[str]) -> list[str]:
    wanted = expand(options.get("nodelist") or "")
    first = int(options.get("relative") or 0)
    order = [*wanted, *names[first:]] if wanted else [*names[first:], *names[:first]]
    order = [name for name in dict.fromkeys(order) if name in names]
    order.sort(key=lambda name: (name not in wanted, name in busy))  # stable: else as allocated
    chosen = order[:nodes]
    return [name for name in names if name in chosen]


def spread(tasks: int, room: list[int], per_node: int | None, each: int) -> list[int]:
    """Fill each node, but leave one task for each that follows."""
    layout, left = [], tasks
    for index, cpus in enumerate(room):
        most = per_node or max(cpus // each, 1)
        here = max(1, min(most, left - (len(room) - index - 1)))
        layout.append(here)
        left -= here
    return layout


def step_variables(job: Job, site: Site, step: str, layout: Layout, options: Options) -> dict[str, str]:
    """What all tasks of a step are told."""
    variables = {
        **job_variables(job, site),
        "SLURM_STEP_ID": step, "SLURM_STEPID": step, "SLURM_STEP_NODELIST": compress(layout.nodes),
        "SLURM_STEP_NUM_NODES": str(len(layout.nodes)), "SLURM_STEP_NUM_TASKS": str(layout.count),
        "SLURM_STEP_TASKS_PER_NODE": counts(layout.tasks), "SLURM_TASKS_PER_NODE": counts(layout.tasks),
        "SLURM_NTASKS": str(layout.count), "SLURM_NPROCS": str(layout.count), "SLURM_NNODES": str(len(layout.nodes)),
        "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0": counts(expand_counts(job["cpus_layout"])),
        "SLURM_DISTRIBUTION": distribution_of(layout).lower(), "SLURM_UMASK": "0022", "SLURM_PRIO_PROCESS": "0",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1", "SLURM_SRUN_COMM_HOST": "127.0.0.1",
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }  # fmt: skip
    if options.get("job-name"):
        variables["SLURM_JOB_NAME"] = options.get("job-name") or ""
    if options.get("mpi"):
        variables["SLURM_MPI_TYPE"] = options.get("mpi") or ""
    if options.get("cpus-per-task"):
        variables["SLURM_CPUS_PER_TASK"] = options.get("cpus-per-task") or ""
    return variables


def distribution_of(layout: Layout) -> str:
    return "Cyclic" if layout.count <= len(layout.nodes) else "Block"


def task_variables(job: Job, step: str, layout: Layout, task: tuple[int, int, int], mpi: str) -> dict[str, str]:
    """What one task is told: its rank, its node, and what its MPI asks for."""
    rank, index, local = task
    before = sum(layout.tasks[:index])
    variables = {
        **node_variables(job, layout.nodes, index),
        "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local),
        "SLURM_CPUS_ON_NODE": str(max(layout.cpus // len(layout.nodes), 1)),
        "SLURM_GTIDS": ",".join(str(before + number) for number in range(layout.tasks[index])),
        "SLURM_TOPOLOGY_ADDR": layout.nodes[index],
    }  # fmt: skip
    if job["gpus"]:
        variables["SLURM_STEP_GPUS"] = variables["SLURM_JOB_GPUS"]
    if mpi.startswith("pmix"):
        variables.update(
            PMIX_RANK=str(rank), PMIX_NAMESPACE=f"slurm.pmix.{job.id}.{step}", PMIX_HOSTNAME=layout.nodes[index]
        )
    elif mpi == "pmi2":
        variables.update(PMI_RANK=str(rank), PMI_SIZE=str(layout.count), PMI_JOBID=f"{job.id}.{step}")
    return variables
