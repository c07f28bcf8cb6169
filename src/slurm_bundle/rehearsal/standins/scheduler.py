"""Which pending job may start, on which nodes, and why the others wait. Pure: records in, decisions out."""

from slurm_bundle.rehearsal.standins.hostlist import compress, counts, expand, expand_counts
from slurm_bundle.rehearsal.standins.jobs import ACTIVE, Job
from slurm_bundle.rehearsal.standins.site import Site


class Allocation:
    """Nodes for a job: their names, and for each its tasks and its cpus."""

    def __init__(self, nodes: list[str], tasks: list[int], cpus: list[int]) -> None:
        self.nodes, self.tasks, self.cpus = nodes, tasks, cpus

    @property
    def nodelist(self) -> str:
        return compress(self.nodes)

    def write(self, job: Job) -> None:
        job.update(nodelist=self.nodelist, layout=counts(self.tasks), cpus_layout=counts(self.cpus))


def used(site: Site, everyone: list[Job]) -> dict[str, list[int]]:
    """What the active jobs have of each node: cpus, GPUs, megabytes."""
    taken = {node: [0, 0, 0] for node in site.nodes}
    for job in everyone:
        if job["state"] not in ACTIVE or not job["nodelist"]:
            continue
        for node, cpus in zip(expand(job["nodelist"]), expand_counts(job["cpus_layout"]), strict=True):
            taken[node][0] += cpus
            taken[node][1] += job.number("gpus")
            taken[node][2] += node_memory(job, cpus)
    return taken


def node_memory(job: Job, cpus: int) -> int:
    return job.number("memory") or job.number("memory_per_cpu") * cpus


def spread(job: Job, nodes: int) -> list[int]:
    """How many tasks go to each of so many nodes."""
    tasks, per_node = job.number("tasks"), job.number("tasks_per_node")
    if per_node:
        return [min(per_node, max(tasks - index * per_node, 1)) for index in range(nodes)]
    return [tasks // nodes + (index < tasks % nodes) for index in range(nodes)]


def choose_nodes(site: Site, job: Job, everyone: list[Job]) -> Allocation | None:
    """Nodes that are free for the job now, or None."""
    taken = used(site, everyone)
    wanted = expand(job["requested"])
    usable = [node for node in site.nodes if node not in expand(job["excluded"])]
    down = set(site.values.get("down", "").split())
    usable = [*[node for node in usable if node in wanted], *[node for node in usable if node not in wanted]]
    tasks = [max(count, 1) for count in spread(job, job.number("nodes"))]
    chosen: list[str] = []
    cpus: list[int] = []
    for node in usable:
        if len(chosen) == len(tasks):
            break
        need = site.cpus if job["exclusive"] else tasks[len(chosen)] * job.number("cpus_per_task", 1)
        busy = taken[node]
        fits = (
            need <= site.cpus - busy[0]
            and job.number("gpus") <= site.gpus - busy[1]
            and node_memory(job, need) <= site.memory - busy[2]
        )
        if fits and node not in down:
            chosen.append(node)
            cpus.append(need)
    if len(chosen) < len(tasks) or set(wanted) - set(chosen):
        return None
    order = sorted(range(len(chosen)), key=lambda index: site.nodes.index(chosen[index]))
    return Allocation([chosen[index] for index in order], tasks, [cpus[index] for index in order])


def estimate_start(site: Site, job: Job, everyone: list[Job], now: float) -> float | None:
    """When the running jobs will have made room at the latest; None where nobody can tell."""
    if job["estimate"]:
        return job.time("estimate")
    ends = [end for other in everyone if other["state"] in ACTIVE and (end := other.limit_end()) is not None]
    return max(ends, default=now)


def judge_dependency(job: Job, everyone: list[Job]) -> str:
    """met, waiting or never."""
    text = job["dependency"]
    verdicts = [judge_part(part, job, everyone) for part in text.replace("?", ",").split(",") if part]
    if "?" in text:
        return "met" if "met" in verdicts else "waiting" if "waiting" in verdicts else "never"
    return "never" if "never" in verdicts else "waiting" if "waiting" in verdicts else "met"


def judge_part(part: str, job: Job, everyone: list[Job]) -> str:
    kind, _, ids = part.partition(":")
    if kind == "singleton":
        same = [other for other in everyone if other["name"] == job["name"] and other["user"] == job["user"]]
        return "waiting" if any(int(o.id) < int(job.id) and not o.has_ended for o in same) else "met"
    verdicts = []
    for name in ids.split(":"):
        name = name.partition("+")[0]
        found = [other for other in everyone if name in (other.id, other["array"])]
        if kind == "aftercorr":
            found = [other for other in found if other["task"] == job["task"]]
        verdicts += [judge_other(kind, other) for other in found]  # a job that is no longer known is no hindrance
    return "never" if "never" in verdicts else "waiting" if "waiting" in verdicts else "met"


def judge_other(kind: str, other: Job) -> str:
    if kind == "after":
        return "met" if other["start"] else "waiting"
    if not other.has_ended:
        return "waiting"
    passed = other["state"] == "COMPLETED"
    return "met" if kind == "afterany" or passed == (kind in ("afterok", "aftercorr")) else "never"


def throttled(job: Job, everyone: list[Job]) -> bool:
    """Whether as many tasks of its array run as may at a time."""
    if not job["throttle"]:
        return False
    busy = [other for other in everyone if other["array"] == job["array"] and other["state"] in ACTIVE]
    return len(busy) >= job.number("throttle")


def hindrance(job: Job, everyone: list[Job], now: float) -> str:
    """Why a job may not even be considered yet; empty where it may."""
    begin = job.time("begin")
    dependency = judge_dependency(job, everyone)
    if job["hold"]:
        return "JobHeldAdmin" if job["hold"] == "admin" else "JobHeldUser"
    if dependency != "met":
        return "Dependency" if dependency == "waiting" else "DependencyNeverSatisfied"
    if begin is not None and begin > now:
        return "BeginTime"
    return "JobArrayTaskLimit" if throttled(job, everyone) else ""
