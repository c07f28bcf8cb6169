"""sacct: what is known of jobs and their steps, also after they have ended."""

import time

from slurm_bundle.rehearsal.standins import columns
from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.getopt import Options, Parser
from slurm_bundle.rehearsal.standins.hostlist import expand
from slurm_bundle.rehearsal.standins.jobs import STATES, Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError, user_name
from slurm_bundle.rehearsal.standins.scheduler import node_memory
from slurm_bundle.rehearsal.standins.site import Site
from slurm_bundle.rehearsal.standins.times import read_begin, show_long, show_memory, show_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = """accounts=A allclusters.L allocations.X allusers.a brief.b clusters=M completion.c delimiter= duplicates.D
endtime=E federation. file=f format=o group=g help.h helpformat.e jobs=j local. long.l name= ncpus=I nnodes=i
noconvert. nodelist=N noheader.n parsable.p parsable2.P partition=r qos=q starttime=S state=s truncate.T uid= units=
usage. user=u verbose.v version.V wckeys=W whole-hetjob?"""
PLAIN = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
# Name and width of each field; those that a practice cluster has nothing to say of stay empty.
WIDTHS = {
    "Account": 10, "AdminComment": 19, "AllocCPUS": 10, "AllocNodes": 10, "AllocTRES": 10, "AssocID": 7, "AveCPU": 10,
    "AveCPUFreq": 10, "AveDiskRead": 14, "AveDiskWrite": 14, "AvePages": 10, "AveRSS": 10, "AveVMSize": 10,
    "BlockID": 16, "Cluster": 10, "Comment": 14, "Constraints": 19, "ConsumedEnergy": 14, "ConsumedEnergyRaw": 17,
    "Container": 20, "CPUTime": 10, "CPUTimeRAW": 10, "DBIndex": 10, "DerivedExitCode": 15, "Elapsed": 10,
    "ElapsedRaw": 10, "Eligible": 19, "End": 19, "ExitCode": 8, "Flags": 20, "GID": 6, "Group": 9, "JobID": 12,
    "JobIDRaw": 12, "JobName": 10, "Layout": 9, "MaxDiskRead": 12, "MaxDiskReadNode": 15, "MaxDiskReadTask": 15,
    "MaxDiskWrite": 12, "MaxDiskWriteNode": 16, "MaxDiskWriteTask": 16, "MaxPages": 8, "MaxPagesNode": 12,
    "MaxPagesTask": 14, "MaxRSS": 10, "MaxRSSNode": 10, "MaxRSSTask": 10, "MaxVMSize": 10, "MaxVMSizeNode": 14,
    "MaxVMSizeTask": 14, "McsLabel": 9, "MinCPU": 10, "MinCPUNode": 10, "MinCPUTask": 10, "NCPUS": 10, "NNodes": 8,
    "NodeList": 15, "NTasks": 8, "Partition": 10, "Priority": 10, "QOS": 10, "QOSRAW": 6, "Reason": 22,
    "ReqCPUFreq": 10, "ReqCPUFreqGov": 13, "ReqCPUFreqMax": 13, "ReqCPUFreqMin": 13, "ReqCPUS": 8, "ReqMem": 10,
    "ReqNodes": 8, "ReqTRES": 10, "Reservation": 20, "ReservationId": 13, "Reserved": 10, "ResvCPU": 10,
    "ResvCPURAW": 10, "Start": 19, "State": 10, "Submit": 19, "SubmitLine": 20, "Suspended": 10, "SystemComment": 19,
    "SystemCPU": 10, "Timelimit": 10, "TimelimitRaw": 12, "TotalCPU": 10, "TRESUsageInAve": 14, "TRESUsageInMax": 14,
    "TRESUsageInMaxNode": 18, "TRESUsageInMaxTask": 18, "TRESUsageInMin": 14, "TRESUsageInMinNode": 18,
    "TRESUsageInMinTask": 18, "TRESUsageInTot": 14, "TRESUsageOutAve": 15, "TRESUsageOutMax": 15,
    "TRESUsageOutMaxNode": 19, "TRESUsageOutMaxTask": 19, "TRESUsageOutMin": 15, "TRESUsageOutMinNode": 19,
    "TRESUsageOutMinTask": 19, "TRESUsageOutTot": 15, "UID": 6, "User": 9, "UserCPU": 10, "WCKey": 10, "WCKeyID": 8,
    "WorkDir": 20,
}  # fmt: skip
LEFT = ("JobID", "JobIDRaw")


def run(place: Place, words: list[str]) -> int:
    options = Parser("sacct", TABLE, permute=True).parse(words)
    site, now = Site(place), Clock(place).now()
    if "version" in options:
        print(site["version"])
        return 0
    if "helpformat" in options:
        names = [f"{name:19}" for name in WIDTHS]
        print("\n".join(" ".join(names[first : first + 4]) for first in range(0, len(names), 4)))
        return 0
    fields = read_fields(options.get("format") or (BRIEF if "brief" in options else PLAIN))
    jobs = Jobs(place)
    with place.lock():
        chosen = [(job, jobs.steps(job.id)) for job in choose(jobs, options, now)]
    show_header(fields, options)
    for job, steps in collect(chosen):
        print(show(fields, [job_value(name, job, site, now) for name, _ in fields], options))
        for step in [] if "allocations" in options else steps:
            print(show(fields, [step_value(name, job, step, now) for name, _ in fields], options))
    return 0


def read_fields(text: str) -> list[tuple[str, int]]:
    """jobid,state%20 -> the names as they are headed, each with its width (below 0: left)."""
    known = {name.lower(): name for name in WIDTHS}
    fields = []
    for word in filter(None, text.split(",")):
        asked, _, width = word.partition("%")
        found = [name for lower, name in known.items() if lower == asked.lower()]
        found = found or [name for lower, name in known.items() if lower.startswith(asked.lower())]
        if not found:
            raise StopError(1, f'sacct: error: Invalid field requested: "{asked}"')
        size = int(width) if width.lstrip("-").isdigit() else WIDTHS[found[0]]
        fields.append((found[0], -abs(size) if found[0] in LEFT else size))
    return fields


def choose(jobs: Jobs, options: Options, now: float) -> list[Job]:
    everyone = jobs.all()
    wanted = options.get("jobs")
    if wanted is not None:
        ids = [word.partition(".")[0] for word in wanted.split(",")]
        return [job for job in everyone if any(job.shown_id == name or name in (job.id, job["array"]) for name in ids)]
    user = options.get("user") or options.get("uid") or ("" if "allusers" in options else user_name())
    midnight = time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))
    text = options.get("starttime") or ""
    since = now - 86400 if text.startswith("now-1day") else read_begin(text, now) if text else midnight
    found = [job for job in everyone if not user or user in (job["user"], job["uid"])]
    found = [job for job in found if (job.time("end") or now) >= (since or 0)]
    states = [word.upper() for word in (options.get("state") or "").split(",") if word]
    if states:
        found = [job for job in found if {job["state"], STATES[job["state"]]} & set(states)]
    names = options.get("name")
    return [job for job in found if names is None or job["name"] in names.split(",")]


def collect(chosen: list[tuple[Job, list[Job]]]) -> list[tuple[Job, list[Job]]]:
    """The rows; tasks of an array that wait together share one, by the name 7_[1-4]."""
    rows: list[tuple[Job, list[Job]]] = []
    for job, steps in chosen:
        last = rows[-1][0] if rows else Job()
        if job["array"] and job["state"] == "PENDING" and last["array"] == job["array"] and last["pending"]:
            last["pending"] += f",{job['task']}"
        else:
            pending = {"pending": job["task"]} if job["array"] and job["state"] == "PENDING" else {}
            rows.append((Job({**job, **pending}), steps))
    return rows


def show_header(fields: list[tuple[str, int]], options: Options) -> None:
    if "noheader" in options:
        return
    print(show(fields, [name for name, _ in fields], options))
    if "parsable" not in options and "parsable2" not in options:
        print(" ".join("-" * abs(width) for _, width in fields) + " ")


def show(fields: list[tuple[str, int]], values: list[str], options: Options) -> str:
    if "parsable2" in options or "parsable" in options:
        divider = options.get("delimiter") or "|"
        return divider.join(values) + (divider if "parsable2" not in options else "")
    line = ""
    for (_, width), value in zip(fields, values, strict=True):
        size = abs(width)
        shown = value if len(value) <= size else value[: size - 1] + "+"
        line += (shown.ljust(size) if width < 0 else shown.rjust(size)) + " "
    return line


def state_of(job: Job) -> str:
    if job["ending"]:
        return (
            "RUNNING" if job["ending"] == "REQUEUED" else state_of(Job({**job, "state": job["ending"], "ending": ""}))
        )
    if job["state"] == "CANCELLED":
        return f"CANCELLED by {job['cancelled_by'] or 0}"
    return "RUNNING" if job["state"] in ("CONFIGURING", "COMPLETING") else job["state"]


def tres(cpus: int, memory: int, nodes: int, gpus: int, *, billing: bool) -> str:
    parts = [f"billing={cpus}"] if billing else []
    parts.append(f"cpu={cpus}")
    if gpus:
        parts.append(f"gres/gpu={gpus}")
    return ",".join([*parts, f"mem={show_memory(memory)}", f"node={nodes}"])


def shown_id(job: Job) -> str:
    if not job["pending"]:
        return job.shown_id
    return f"{job['array']}_[{columns.Row(job, job['pending'].split(',')).task_text()}]"


def job_value(name: str, job: Job, site: Site, now: float) -> str:
    nodes, cpus = columns.node_count(job), columns.cpu_count(job)
    asked = tres(cpus, columns.memory_total(job), nodes, job.number("gpus") * nodes, billing=True)
    started = bool(job["nodelist"])
    cancelled_early = job["state"] == "CANCELLED" and not started
    plain = {
        "Account": "account", "Comment": "comment", "Group": "group", "GID": "gid", "JobName": "name",
        "Partition": "partition", "Priority": "priority", "QOS": "qos", "SubmitLine": "submit_line", "UID": "uid",
        "User": "user", "WorkDir": "workdir", "Reason": "last_reason", "Constraints": "features",
    }  # fmt: skip
    if name in plain:
        return job[plain[name]] or ("None" if name == "Reason" else "")
    code = job["exit"] or "0:0"
    values: dict[str, Callable[[], str]] = {
        "JobID": lambda: shown_id(job),
        "JobIDRaw": lambda: job.id,
        "State": lambda: state_of(job),
        "ExitCode": lambda: code if job["state"] in ("FAILED", "COMPLETED", "OUT_OF_MEMORY") else "0:0",
        "DerivedExitCode": lambda: job["derived"] or "0:0",
        "AllocCPUS": lambda: str(cpus) if started else "0",
        "NCPUS": lambda: str(cpus),
        "ReqCPUS": lambda: str(cpus),
        "AllocNodes": lambda: str(nodes) if started else "0",
        "NNodes": lambda: str(nodes),
        "ReqNodes": lambda: str(nodes),
        "AllocTRES": lambda: asked if started else "",
        "ReqTRES": lambda: asked,
        "ReqMem": lambda: show_memory(columns.memory_total(job) if not job["memory"] else job.number("memory") * nodes),
        "NodeList": lambda: job["nodelist"] or "None assigned",
        "Start": lambda: show_stamp(job.time("start"), unknown="Unknown") if not cancelled_early else "None",
        "End": lambda: show_stamp(job.time("end"), unknown="Unknown"),
        "Submit": lambda: show_stamp(job.time("submit")),
        "Eligible": lambda: show_stamp(job.time("eligible"), unknown="Unknown"),
        "Elapsed": lambda: show_long(job.elapsed(now) if started else 0),
        "ElapsedRaw": lambda: str(int(job.elapsed(now) if started else 0)),
        "CPUTime": lambda: show_long(int(job.elapsed(now)) * cpus if started else 0),
        "CPUTimeRAW": lambda: str(int(job.elapsed(now)) * cpus if started else 0),
        "Timelimit": lambda: show_long(job.number("limit")),
        "TimelimitRaw": lambda: str(job.number("limit") // 60),
        "Cluster": lambda: site["cluster"],
    }
    return values[name]() if name in values else ""


def step_value(name: str, job: Job, step: Job, now: float) -> str:
    cpus, nodes = step.number("cpus", 1), len(expand(step["nodelist"]))
    gpus = job.number("gpus") * nodes
    memory = node_memory(job, cpus)
    values: dict[str, Callable[[], str]] = {
        "JobID": lambda: f"{job.shown_id}.{step.id}", "JobIDRaw": lambda: f"{job.id}.{step.id}",
        "JobName": lambda: step["name"], "Account": lambda: job["account"],
        "State": lambda: step["state"] + (f" by {step['cancelled_by']}" if step["cancelled_by"] else ""),
        "ExitCode": lambda: step["exit"], "NodeList": lambda: step["nodelist"],
        "AllocCPUS": lambda: str(cpus), "NCPUS": lambda: str(cpus), "ReqCPUS": lambda: str(cpus),
        "AllocNodes": lambda: str(nodes), "NNodes": lambda: str(nodes), "ReqNodes": lambda: str(nodes),
        "NTasks": lambda: step["tasks"], "AllocTRES": lambda: tres(cpus, memory, nodes, gpus, billing=False),
        "Start": lambda: show_stamp(step.time("start")), "End": lambda: show_stamp(step.time("end"), unknown="Unknown"),
        "Submit": lambda: show_stamp(step.time("start")), "Eligible": lambda: show_stamp(step.time("start")),
        "Elapsed": lambda: show_long(step.elapsed(now)), "ElapsedRaw": lambda: str(int(step.elapsed(now))),
        "CPUTime": lambda: show_long(int(step.elapsed(now)) * cpus), "Cluster": lambda: "",
        "Layout": lambda: step["distribution"] or "Unknown", "SubmitLine": lambda: step["submit_line"],
    }  # fmt: skip
    return values[name]() if name in values else ""
