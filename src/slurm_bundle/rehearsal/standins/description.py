"""How scontrol describes a job, a step, a node and a partition: lists of lines, each of NAME=value words."""

from slurm_bundle.rehearsal.standins import columns
from slurm_bundle.rehearsal.standins.columns import NULL
from slurm_bundle.rehearsal.standins.environment import fill_pattern
from slurm_bundle.rehearsal.standins.hostlist import compress, expand
from slurm_bundle.rehearsal.standins.jobs import Job
from slurm_bundle.rehearsal.standins.sacct import tres
from slurm_bundle.rehearsal.standins.site import Partition, Site
from slurm_bundle.rehearsal.standins.times import show_long, show_memory, show_stamp, show_total_memory


def describe_job(job: Job, everyone: list[Job], now: float, tasks: str = "") -> list[str]:
    """The lines of a job; `tasks` are those of an array that wait together, as 1-4%2."""
    lines = [*describe_state(job, everyone, now, tasks), *describe_size(job)]
    lines += [f"Command={job['command'] or NULL}", f"WorkDir={job['workdir']}"]
    if job["comment"]:
        lines.append(f"Comment={job['comment']} ")
    if job["kind"] == "batch":
        out, err = log_paths(Job({**job, "task": ""}) if tasks else job)
        lines += [f"StdErr={err}", f"StdIn={job['stdin']}", f"StdOut={out}"]
    lines.append("Power=")
    return [*lines, *([f"TresPerNode={columns.gres_of(job)}"] if job["gpus"] else []), ""]


def describe_state(job: Job, everyone: list[Job], now: float, tasks: str) -> list[str]:
    """Who it is, how it is, and since when."""
    estimate = columns.estimate_of(job, everyone, now)
    run_time = show_long(job.elapsed(now) if job["nodelist"] else 0)
    least = show_long(job.number("time_min")) if job["time_min"] else "N/A"
    start = show_stamp(columns.start_of(job, estimate), unknown="Unknown")
    end = show_stamp(columns.end_of(job, estimate), unknown="Unknown")
    seen = show_stamp(job.time("start") or job.time("submit"))
    eligible, accrued = eligible_since(job)
    return [
        f"JobId={job.id}{array_words(job, tasks)} JobName={job['name']}",
        f"UserId={job['user']}({job['uid']}) GroupId={job['group']}({job['gid']}) MCS_label=N/A",
        f"Priority={columns.priority_of(job)} Nice={job['nice']} Account={job['account']} QOS={job['qos']}",
        f"JobState={job['state']} Reason={job['reason']} Dependency={columns.dependency_of(job, everyone)}",
        f"Requeue={job['requeue']} Restarts={job['restarts']} BatchFlag={int(job['kind'] == 'batch')} Reboot=0 "
        f"ExitCode={exit_of(job)}",
        f"RunTime={run_time} TimeLimit={show_long(job.number('limit'))} TimeMin={least}",
        f"SubmitTime={show_stamp(job.time('submit'))} EligibleTime={eligible}",
        f"AccrueTime={accrued}",
        f"StartTime={start} EndTime={end} Deadline=N/A",
        f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={seen} Scheduler=Main",
    ]


def array_words(job: Job, tasks: str) -> str:
    if not job["array"]:
        return ""
    throttle = f" ArrayTaskThrottle={job['throttle']}" if job["throttle"] and columns.is_pending(job) else ""
    return f" ArrayJobId={job['array']} ArrayTaskId={tasks or job['task']}{throttle}"


def exit_of(job: Job) -> str:
    if job["state"] in ("CANCELLED", "TIMEOUT", "PREEMPTED") and job["nodelist"]:
        return "0:15"
    return job["exit"] or "0:0"


def eligible_since(job: Job) -> tuple[str, str]:
    """EligibleTime and AccrueTime."""
    held = ("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied")
    waiting = columns.is_pending(job) and job["reason"] in held
    eligible = "Unknown" if waiting else show_stamp(job.time("begin") or job.time("submit"))
    accrued = "Unknown" if waiting or job["reason"] == "BeginTime" else show_stamp(job.time("submit"))
    return eligible, accrued


def describe_size(job: Job) -> list[str]:
    """Where it runs, and what it has or asks for."""
    nodes, cpus, per_node = columns.node_count(job), columns.cpu_count(job), job.number("tasks_per_node")
    count = f"{nodes}-{nodes}" if columns.is_pending(job) and job["said_nodes"] else str(nodes)
    least = max(per_node, 1) * job.number("cpus_per_task", 1)
    memory = "MinMemoryNode" if job["memory"] else "MinMemoryCPU"
    asked = tres(cpus, columns.memory_total(job), nodes, job.number("gpus") * nodes, billing=True)
    return [
        f"Partition={job['partition']} AllocNode:Sid=login1:{job['session'] or 1}",
        f"ReqNodeList={job['requested'] or NULL} ExcNodeList={job['excluded'] or NULL}",
        f"NodeList={job['nodelist']}",
        *([f"BatchHost={expand(job['nodelist'])[0]}"] if job["nodelist"] else []),
        f"NumNodes={count} NumCPUs={cpus} NumTasks={job['tasks']} CPUs/Task={job['cpus_per_task']} ReqB:S:C:T=0:0:*:*",
        f"TRES={order_as_scontrol(asked)}",
        f"Socks/Node=* NtasksPerN:B:S:C={per_node}:0:*:* CoreSpec=*",
        f"MinCPUsNode={least} {memory}={columns.memory_of(job)} MinTmpDiskNode=0",
        f"Features={job['features'] or NULL} DelayBoot=00:00:00",
        f"OverSubscribe={'NO' if job['exclusive'] else 'OK'} Contiguous=0 Licenses={job['licenses'] or NULL} "
        f"Network={job['network'] or NULL}",
    ]


def log_paths(job: Job) -> tuple[str, str]:
    """Where its stdout and stderr go."""
    out = place_of(job, job["stdout"])
    return out, place_of(job, job["stderr"]) if job["stderr"] else out


def place_of(job: Job, pattern: str) -> str:
    node = "login1" if job["nodelist"] else ""
    path = fill_pattern(pattern, job, node=node)
    return path if path.startswith("/") else f"{job['workdir']}/{path}"


def order_as_scontrol(text: str) -> str:
    """cpu, mem, node, billing, gres: not by the alphabet, as sacct has it."""
    found = dict(part.split("=") for part in text.split(","))
    order = ("cpu", "mem", "node", "billing", "gres/gpu")
    return ",".join(f"{name}={found[name]}" for name in order if name in found)


def describe_step(job: Job, step: Job) -> list[str]:
    return [
        f"StepId={job.id}.{step.id} UserId={job['uid']} StartTime={show_stamp(step.time('start'))} TimeLimit=UNLIMITED",
        f"State={step['state']} Partition={job['partition']} NodeList={step['nodelist']}",
        f"Nodes={len(expand(step['nodelist']))} CPUs={step['cpus'] if step.id.isdigit() else 0} Tasks={step['tasks']} "
        f"Name={step['name']} Network=(null)",
        "TRES=(null)" if not step.id.isdigit() else f"TRES=cpu={step['cpus']},node={len(expand(step['nodelist']))}",
        "ResvPorts=(null)",
        f"CPUFreqReq=Default Dist={step['distribution'] or 'Unknown'}" if step.id.isdigit() else "CPUFreqReq=Default",
        "SrunHost:Pid=(null):0",
    ]


def describe_partition(site: Site, partition: Partition) -> list[str]:
    count, cpus = len(site.nodes), site.cpus * len(site.nodes)
    gpus = f",gres/gpu={site.gpus * count}" if site.gpus else ""
    return [
        f"PartitionName={partition.name}",
        "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
        f"AllocNodes=ALL Default={'YES' if partition.default else 'NO'} QoS=N/A",
        f"DefaultTime={show_long(partition.usual)} DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={show_long(partition.longest)} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
        f"Nodes={compress(site.nodes)}",
        "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State=UP TotalCPUs={cpus} TotalNodes={count} SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES=cpu={cpus},mem={site.memory * count // 1024}G,node={count},billing={cpus}{gpus}",
    ]


def describe_node(site: Site, node: str, taken: list[int], since: float) -> list[str]:
    cpus, gpus, memory = taken
    state = "IDLE" if not cpus else "ALLOCATED" if cpus >= site.cpus else "MIXED"
    features = site["features"].replace(" ", ",") or NULL
    cards = f",gres/gpu={site.gpus}" if site.gpus else ""
    busy = f"cpu={cpus},mem={show_memory(memory)}" + (f",gres/gpu={gpus}" if gpus else "") if cpus else ""
    return [
        f"NodeName={node} Arch=x86_64 CoresPerSocket={site.cpus // 2} ",
        f"CPUAlloc={cpus} CPUEfctv={site.cpus} CPUTot={site.cpus} CPULoad=0.00",
        f"AvailableFeatures={features}",
        f"ActiveFeatures={features}",
        f"Gres={f'gpu:{site.gpus}' if site.gpus else NULL}",
        f"NodeAddr={node} NodeHostName={node} Version={site['version'].rpartition(' ')[2]}",
        "OS=Linux 6.1.0 ",
        f"RealMemory={site.memory} AllocMem={memory} FreeMem={site.memory} Sockets=2 Boards=1",
        f"State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={','.join(partition.name for partition in site.partitions)} ",
        f"BootTime={show_stamp(since)} SlurmdStartTime={show_stamp(since)}",
        f"LastBusyTime={show_stamp(since)}",
        f"CfgTRES=cpu={site.cpus},mem={show_total_memory(site.memory)},billing={site.cpus}{cards}",
        f"AllocTRES={busy}",
        "CapWatts=n/a",
        "CurrentWatts=0 AveWatts=0",
        "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
    ]
