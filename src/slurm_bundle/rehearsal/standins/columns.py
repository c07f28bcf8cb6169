"""What squeue, sacct and scontrol say of a job: each fact once, in Slurm's words."""

from slurm_bundle.rehearsal.standins.hostlist import expand, expand_counts, ranges
from slurm_bundle.rehearsal.standins.jobs import ACTIVE, STATES, Job
from slurm_bundle.rehearsal.standins.scheduler import node_memory
from slurm_bundle.rehearsal.standins.times import show_memory, show_short, show_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NULL = "(null)"
UNKNOWABLE = ("None", "JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied")


def is_pending(job: Job) -> bool:
    return job["state"] == "PENDING"


def node_count(job: Job) -> int:
    return len(expand(job["nodelist"])) or job.number("nodes", 1)


def cpu_count(job: Job) -> int:
    if job["cpus_layout"]:
        return sum(expand_counts(job["cpus_layout"]))
    return max(job.number("tasks", 1) * job.number("cpus_per_task", 1), job.number("nodes", 1))


def memory_of(job: Job) -> str:
    return show_memory(job.number("memory") or job.number("memory_per_cpu"))


def memory_total(job: Job) -> int:
    layout = expand_counts(job["cpus_layout"]) if job["cpus_layout"] else [cpu_count(job)]
    return sum(node_memory(job, cpus) for cpus in layout)


def start_of(job: Job, estimate: float | None) -> float | None:
    """When it started; for a pending one, when it may."""
    if not is_pending(job):
        return job.time("start")
    return estimate


def end_of(job: Job, estimate: float | None) -> float | None:
    if job.time("end") is not None:
        return job.time("end")
    start = start_of(job, estimate)
    return None if start is None or job.number("limit") < 0 else start + job.number("limit")


def nodes_or_reason(job: Job) -> str:
    """The last column of squeue: where it runs, or in parentheses why it does not."""
    if is_pending(job) or (not job["nodelist"] and job.has_ended):
        return f"({job['reason']})"
    return job["nodelist"]


def priority_of(job: Job) -> int:
    return 0 if job["hold"] and is_pending(job) else job.number("priority")


def gres_of(job: Job) -> str:
    return f"gres:gpu:{job['gpus']}" if job["gpus"] else ""


def dependency_of(job: Job, everyone: list[Job]) -> str:
    """As scontrol shows what is still waited for: afterok:20(unfulfilled)."""
    shown = []
    for part in job["dependency"].split(","):
        kind, _, ids = part.partition(":")
        for name in filter(None, ids.split(":")):
            other = [one for one in everyone if name in (one.id, one["array"])]
            if other and not all(one.has_ended and kind == "afterany" for one in other):
                failed = all(one.has_ended for one in other)
                shown.append(f"{kind}:{name}({'failed' if failed else 'unfulfilled'})")
    return ",".join(shown) if shown and is_pending(job) else NULL


# What squeue --format may name: the letter, its heading, and the value.
HEADINGS = {
    "a": "ACCOUNT", "A": "JOBID", "b": "TRES_PER_NODE", "B": "EXEC_HOST", "c": "MIN_CPUS", "C": "CPUS",
    "d": "MIN_TMP_DISK", "D": "NODES", "e": "END_TIME", "E": "DEPENDENCY", "f": "FEATURES", "F": "ARRAY_JOB_ID",
    "g": "GROUP", "G": "GROUP", "h": "OVER_SUBSCRIBE", "i": "JOBID", "j": "NAME", "k": "COMMENT",
    "K": "ARRAY_TASK_ID", "l": "TIME_LIMIT", "L": "TIME_LEFT", "m": "MIN_MEMORY", "M": "TIME", "n": "REQ_NODES",
    "N": "NODELIST", "o": "COMMAND", "p": "PRIORITY", "P": "PARTITION", "q": "QOS", "Q": "PRIORITY", "r": "REASON",
    "R": "NODELIST(REASON)", "S": "START_TIME", "t": "ST", "T": "STATE", "u": "USER", "U": "UID", "v": "RESERVATION",
    "V": "SUBMIT_TIME", "w": "WCKEY", "W": "LICENSES", "x": "EXC_NODES", "y": "NICE", "Y": "SCHEDNODES",
    "Z": "WORK_DIR",
}  # fmt: skip


class Row:
    """A line of squeue: a job, or the pending tasks of an array together."""

    def __init__(self, job: Job, tasks: list[str] | None = None) -> None:
        self.job = job
        self.tasks = tasks or ([job["task"]] if job["task"] else [])
        self.together = tasks is not None

    def task_text(self) -> str:
        text = ranges(self.tasks) if self.tasks else "N/A"
        limit = self.job["throttle"]
        return f"{text}%{limit}" if self.together and limit else text

    def shown_id(self) -> str:
        return f"{self.job['array']}_[{self.task_text()}]" if self.together else self.job.shown_id


def queue_value(letter: str, row: Row, everyone: list[Job], estimate: float | None, now: float) -> str:
    """The value of %LETTER in a row of squeue."""
    job = row.job
    left = job.number("limit") - job.elapsed(now)
    end, start = end_of(job, estimate), start_of(job, estimate)
    plain = {
        "a": "account", "g": "group", "G": "gid", "j": "name", "P": "partition", "q": "qos",
        "r": "reason", "T": "state", "u": "user", "U": "uid", "Z": "workdir", "N": "nodelist", "y": "nice",
        "n": "requested",
    }  # fmt: skip
    if letter in plain:
        return job[plain[letter]]
    values: dict[str, Callable[[], str]] = {
        "i": row.shown_id, "A": lambda: job["array"] or job.id, "F": lambda: job["array"] or job.id, "K": row.task_text,
        "t": lambda: STATES[job["state"]], "R": lambda: nodes_or_reason(job),
        "S": lambda: show_stamp(start), "e": lambda: show_stamp(end), "V": lambda: show_stamp(job.time("submit")),
        "M": lambda: show_short(job.elapsed(now)), "l": lambda: show_short(job.number("limit")),
        "L": lambda: "UNLIMITED" if job.number("limit") < 0 else show_short(max(left, 0)),
        "D": lambda: str(node_count(job)), "C": lambda: str(cpu_count(job)), "m": lambda: memory_of(job),
        "c": lambda: str(max(job.number("tasks_per_node"), 1) * job.number("cpus_per_task", 1)),
        "b": lambda: gres_of(job) or "N/A", "B": lambda: expand(job["nodelist"])[0] if job["nodelist"] else "n/a",
        "o": lambda: job["command"] or NULL, "k": lambda: job["comment"] or NULL,
        "E": lambda: dependency_of(job, everyone), "f": lambda: job["features"] or NULL, "d": lambda: "0",
        "Q": lambda: str(priority_of(job)),
        "h": lambda: "NO" if job["exclusive"] else "OK", "v": lambda: NULL, "w": lambda: NULL, "W": lambda: NULL,
        "x": lambda: job["excluded"], "Y": lambda: NULL, "p": lambda: f"{priority_of(job) / 2**32:.14f}",
    }  # fmt: skip
    return values[letter]() if letter in values else ""


def is_shown(job: Job, now: float, min_age: int) -> bool:
    """Whether the controller still knows the job: it forgets those that have ended, after a while."""
    end = job.time("end")
    return not job.has_ended or end is None or now - end < min_age


def estimate_of(job: Job, everyone: list[Job], now: float) -> float | None:
    """When a pending job may start, as far as the controller would have it worked out."""
    if not is_pending(job) or job["reason"] in UNKNOWABLE:
        return None
    if job["estimate"]:
        return job.time("estimate")
    if job["reason"] == "BeginTime":
        return job.time("begin")
    ends = [end for other in everyone if other["state"] in ACTIVE and (end := other.limit_end()) is not None]
    return max([now, *ends])
