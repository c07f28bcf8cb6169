"""The environments of jobs, steps and tasks: the variables that Slurm sets, and what comes along from outside."""

from slurm_bundle.rehearsal.standins.hostlist import counts, expand, expand_counts
from slurm_bundle.rehearsal.standins.jobs import Job
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.site import Site

PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"


def path_for(place: Place, side: str, path: str) -> str:
    """A PATH as it is on that side: its own stand-ins first, and none of another side's."""
    others = {place.bin(name) for name in ("local", "login", "node")}
    return ":".join([place.bin(side), *[folder for folder in path.split(":") if folder not in others]])


def plain_environment(place: Place, home: str, name: str) -> dict[str, str]:
    """What a fresh login has: nothing of the environment here. Its git reaches nothing but folders of this machine."""
    return {
        "HOME": home, "USER": name, "LOGNAME": name, "SHELL": "/bin/bash", "TMPDIR": place.tmp, "TERM": "dumb",
        "PATH": PLAIN_PATH, "TMUX_TMPDIR": place.tmp, "GIT_ALLOW_PROTOCOL": "file",
        "GIT_TRACE2_EVENT": f"{place.root}/git/{place.side}",
    }  # fmt: skip


def export(environment: dict[str, str], wish: str | None, plain: dict[str, str]) -> dict[str, str]:
    """What --export lets through: ALL, NONE, or names and NAME=VALUE."""
    if wish is None or wish == "ALL":
        return dict(environment)
    if wish in ("NONE", "NIL"):
        return dict(plain)
    words = wish.split(",")
    chosen = dict(environment) if "ALL" in words else dict(plain)
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            chosen[name] = value
        elif name in environment:
            chosen[name] = environment[name]
    return chosen


def job_variables(job: Job, site: Site) -> dict[str, str]:
    """What Slurm says of the allocation, to the batch script and to whatever salloc starts."""
    nodes, layout = expand(job["nodelist"]), expand_counts(job["layout"])
    cpus = expand_counts(job["cpus_layout"])
    variables = {
        "SLURM_CLUSTER_NAME": site["cluster"], "SLURM_JOB_ID": job.id, "SLURM_JOBID": job.id,
        "SLURM_JOB_NAME": job["name"], "SLURM_JOB_ACCOUNT": job["account"], "SLURM_JOB_PARTITION": job["partition"],
        "SLURM_JOB_QOS": job["qos"], "SLURM_JOB_USER": job["user"], "SLURM_JOB_UID": job["uid"],
        "SLURM_JOB_GID": job["gid"], "SLURM_JOB_NODELIST": job["nodelist"], "SLURM_NODELIST": job["nodelist"],
        "SLURM_JOB_NUM_NODES": str(len(nodes)), "SLURM_NNODES": str(len(nodes)), "SLURM_NODE_ALIASES": "(null)",
        "SLURM_TASKS_PER_NODE": counts(layout), "SLURM_JOB_CPUS_PER_NODE": counts(cpus),
        "SLURM_SUBMIT_DIR": job["submitted_from"], "SLURM_SUBMIT_HOST": "login1",
    }  # fmt: skip
    if job["memory"]:
        variables["SLURM_MEM_PER_NODE"] = job["memory"]
    else:
        variables["SLURM_MEM_PER_CPU"] = job["memory_per_cpu"]
    if job["said_tasks"]:
        variables["SLURM_NTASKS"] = variables["SLURM_NPROCS"] = job["tasks"]
    if job.number("tasks_per_node"):
        variables["SLURM_NTASKS_PER_NODE"] = job["tasks_per_node"]
    if job["said_cpus"]:
        variables["SLURM_CPUS_PER_TASK"] = job["cpus_per_task"]
    if job["gpus"]:
        variables["SLURM_GPUS_PER_NODE"] = job["gpus"]
        variables["SLURM_GPUS_ON_NODE"] = job["gpus"]
    if job["array"]:
        tasks = [int(task) for task in job["array_tasks"].split(",")]
        step = tasks[1] - tasks[0] if len(tasks) > 1 else 1
        variables.update(
            SLURM_ARRAY_JOB_ID=job["array"], SLURM_ARRAY_TASK_ID=job["task"], SLURM_ARRAY_TASK_COUNT=str(len(tasks)),
            SLURM_ARRAY_TASK_MIN=str(min(tasks)), SLURM_ARRAY_TASK_MAX=str(max(tasks)), SLURM_ARRAY_TASK_STEP=str(step),
        )  # fmt: skip
    if job["restarts"] != "0":
        variables["SLURM_RESTART_COUNT"] = job["restarts"]
    return variables


def node_variables(job: Job, nodes: list[str], index: int) -> dict[str, str]:
    """What differs from node to node."""
    variables = {"SLURMD_NODENAME": nodes[index], "SLURM_NODEID": str(index), "SLURM_LOCALID": "0"}
    if job["gpus"]:
        cards = ",".join(map(str, range(job.number("gpus"))))
        variables.update(CUDA_VISIBLE_DEVICES=cards, SLURM_JOB_GPUS=cards)
    return variables


def batch_variables(job: Job, site: Site) -> dict[str, str]:
    nodes = expand(job["nodelist"])
    return {
        **job_variables(job, site),
        **node_variables(job, nodes, 0),
        "ENVIRONMENT": "BATCH",
        "SLURM_PROCID": "0",
        "SLURM_GTIDS": "0",
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_CPUS_ON_NODE": str(expand_counts(job["cpus_layout"])[0]),
        "SLURM_TOPOLOGY_ADDR": nodes[0],
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }


def fill_pattern(pattern: str, job: Job, *, step: str = "", node: str = "", rank: int = 0, local: int = 0) -> str:
    """The name of a file: %j %J %A %a %x %u %N %n %s %t and %%, each perhaps with a width, as in %4t."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    known = {
        "j": job.id, "A": job["array"] or job.id, "a": job["task"] or "4294967294", "x": job["name"], "u": job["user"],
        "N": node or "%N", "n": (str(local) if step else str(rank)) if node else "%n", "s": step or "batch",
        "t": str(rank), "%": "%",
        "J": f"{job.id}.{step}" if step else job.id, "b": str(int(job["task"] or 0) % 10),
    }  # fmt: skip
    out, rest = "", pattern
    while rest:
        before, mark, rest = rest.partition("%")
        out += before
        if not mark:
            break
        width = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        letter = rest[len(width) : len(width) + 1]
        value = known.get(letter)
        rest = rest[len(width) + 1 :]
        out += f"%{width}{letter}" if value is None else value.zfill(int(width or 0)) if value.isdigit() else value
    return out
