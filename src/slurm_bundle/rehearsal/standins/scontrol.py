"""scontrol: what the controller knows in detail, and changes to jobs."""

import os

from slurm_bundle.rehearsal.standins import columns, hostlist
from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.description import (
    describe_job,
    describe_node,
    describe_partition,
    describe_step,
)
from slurm_bundle.rehearsal.standins.getopt import Parser
from slurm_bundle.rehearsal.standins.jobs import Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.scheduler import used
from slurm_bundle.rehearsal.standins.site import Site
from slurm_bundle.rehearsal.standins.squeue import group
from slurm_bundle.rehearsal.standins.times import read_limit

TABLE = (
    "all.a clusters=M details.d federation. help.h hide. local. oneliner.o quiet.Q sibling. uid=u verbose.v version.V"
)
NO_JOB = "Invalid job id specified"


class Call:
    """One call of scontrol: the place, what is in it, and whether a thing is shown on one line."""

    def __init__(self, place: Place, *, oneliner: bool) -> None:
        self.place, self.oneliner = place, oneliner
        self.site, self.jobs, self.now = Site(place), Jobs(place), Clock(place).now()

    def show(self, lines: list[str], *, empty_line: bool = True) -> None:
        if self.oneliner:
            print(" ".join(lines))
        else:
            print("\n   ".join(lines) + ("\n" if empty_line else ""))


def run(place: Place, words: list[str]) -> int:
    options = Parser("scontrol", TABLE).parse(words)
    call = Call(place, oneliner="oneliner" in options)
    rest = list(options.rest)
    if "version" in options or rest[:1] == ["version"]:
        print(call.site["version"])
        return 0
    while rest and rest[0].startswith("-"):  # options may follow the command, too
        rest.pop(0)
    keyword, arguments = (rest[0].lower(), rest[1:]) if rest else ("", [])
    if "--oneliner" in arguments or "-o" in arguments:
        call.oneliner = True
        arguments = [word for word in arguments if word not in ("--oneliner", "-o")]
    arguments = [word for word in arguments if word not in ("--details", "-d")]  # what it adds, no bundle reads
    commands = {
        "ping": tell_ping, "show": run_show, "update": run_update, "hold": hold, "uhold": hold, "release": release,
        "requeue": requeue, "write": run_write, "suspend": refuse_suspend, "resume": refuse_suspend,
    }  # fmt: skip
    found = [name for name in commands if keyword and name.startswith(keyword)]
    if not found:
        raise StopError(1, f"invalid keyword: {keyword}")
    return commands[found[0]](call, arguments)


def tell_ping(call: Call, words: list[str]) -> int:
    print("Slurmctld(primary) at slurmctl1 is UP")
    return 0


def run_show(call: Call, words: list[str]) -> int:
    entities = {
        "jobs": show_jobs, "hostnames": show_hostnames, "hostlist": show_hostlist, "nodes": show_nodes,
        "partitions": show_partitions, "steps": show_steps, "config": show_config,
    }  # fmt: skip
    entity, arguments = (words[0], words[1:]) if words else ("", [])
    name, equals, value = entity.partition("=")
    if equals:
        name, arguments = (
            {"jobid": "job", "nodename": "node", "partitionname": "partition"}.get(name.lower(), name),
            [value],
        )
    found = [known for known in entities if name and known.startswith(name.lower())]
    if not found:
        raise StopError(1, f"invalid entity:{name} for keyword:show ")
    return entities[found[0]](call, arguments)


def show_jobs(call: Call, words: list[str]) -> int:
    with call.place.lock():
        everyone = call.jobs.all()
    known = [job for job in everyone if columns.is_shown(job, call.now, call.site.number("min_job_age"))]
    found = known if not words else call.jobs.select(words[0].removeprefix("JobId="), known)
    if words and not found:
        raise StopError(1, f"slurm_load_jobs error: {NO_JOB}")
    for row in group(found, apart=bool(words) and "_" in words[0]):
        tasks = row.task_text() if row.together else ""
        call.show(describe_job(row.job, everyone, call.now, tasks))
    if not found:
        print("No jobs in the system")
    return 0


def show_hostnames(call: Call, words: list[str]) -> int:
    text = ",".join(words) or os.environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        raise StopError(1, "host list is empty")
    print("\n".join(hostlist.expand(text)))
    return 0


def show_hostlist(call: Call, words: list[str]) -> int:
    print(hostlist.compress(hostlist.expand(",".join(words))))
    return 0


def show_nodes(call: Call, words: list[str]) -> int:
    with call.place.lock():
        taken = used(call.site, call.jobs.all())
    wanted = hostlist.expand(words[0]) if words else call.site.nodes
    for node in wanted:
        if node not in call.site.nodes:
            print(f"Node {node} not found")
            return 1
        call.show(describe_node(call.site, node, taken[node], call.now - 86400))
    return 0


def show_partitions(call: Call, words: list[str]) -> int:
    wanted = [partition for partition in call.site.partitions if not words or partition.name == words[0]]
    if not wanted:
        print(f"Partition {words[0]} not found")
        return 1
    for partition in wanted:
        call.show(describe_partition(call.site, partition))
    return 0


def show_steps(call: Call, words: list[str]) -> int:
    with call.place.lock():
        for job in call.jobs.all():
            for step in call.jobs.steps(job.id):
                if step["state"] == "RUNNING" and (not words or words[0] in (job.id, f"{job.id}.{step.id}")):
                    call.show(describe_step(job, step))
    return 0


def show_config(call: Call, words: list[str]) -> int:
    site = call.site
    for name, value in (
        ("AccountingStorageType", "accounting_storage/slurmdbd"),
        ("ClusterName", site["cluster"]),
        ("KillWait", f"{site['kill_wait']} sec"),
        ("MinJobAge", f"{site['min_job_age']} sec"),
        ("SLURM_VERSION", site["version"].rpartition(" ")[2]),
    ):
        print(f"{name:23} = {value}")
    return 0


def named_jobs(call: Call, text: str) -> list[Job]:
    """The jobs that a comma list names. Whoever calls holds the lock."""
    everyone = call.jobs.all()
    found = []
    for name in text.removeprefix("jobid=").removeprefix("JobId=").split(","):
        mine = call.jobs.select(name, everyone)
        if not mine:
            raise StopError(1, f"{NO_JOB} for job {name}")
        found += mine
    return found


def run_update(call: Call, words: list[str]) -> int:
    """scontrol update JobId=N NAME=value...: the time limit, and a few more."""
    pairs = [word.partition("=")[::2] for word in words]
    ids = next((value for name, value in pairs if name.lower() in ("jobid", "job")), None)
    fields = {
        "jobname": "name", "name": "name", "comment": "comment", "partition": "partition", "nice": "nice",
        "requeue": "requeue", "account": "account", "qos": "qos",
    }  # fmt: skip
    if ids is None:
        raise StopError(
            1, "No valid entity in update command", 'Input line must include "NodeName", "PartitionName", etc.'
        )
    changes = {}
    for name, value in pairs:
        if name.lower() == "timelimit":
            limit = read_limit(value.lstrip("+-"))
            if limit is None:
                raise StopError(1, f"Invalid TimeLimit value: {value}", "Request aborted")
            changes["limit"] = value[:1].strip("0123456789") + str(limit)
        elif name.lower() in fields:
            changes[fields[name.lower()]] = value
        elif name.lower() not in ("jobid", "job"):
            raise StopError(1, f"Update of this parameter is not supported: {name}={value}", "Request aborted")
    with call.place.lock():
        for job in named_jobs(call, ids):
            apply_changes(call, job, dict(changes))
    return 0


def apply_changes(call: Call, job: Job, changes: dict[str, str]) -> None:
    if job.has_ended:
        raise StopError(1, f"Job has already finished for job {job.id}")
    limit = changes.pop("limit", None)
    if limit is not None:
        old = job.number("limit")
        new = old + int(limit) if limit[0] in "+-" and limit != "-1" else int(limit)
        if new > old >= 0 and job["state"] != "PENDING":
            raise StopError(1, f"Access/permission denied for job {job.id}")
        job["limit"] = str(new)
    job.update(changes)
    call.jobs.store(job)


def hold(call: Call, words: list[str]) -> int:
    with call.place.lock():
        for job in held_jobs(call, words):
            if job["state"] == "PENDING":
                job.update(hold="yes", reason="JobHeldUser")
                call.jobs.store(job)
    return 0


def release(call: Call, words: list[str]) -> int:
    with call.place.lock():
        for job in held_jobs(call, words):
            if job["state"] == "PENDING":
                job.update(hold="", reason="None")
                call.jobs.store(job)
    return 0


def held_jobs(call: Call, words: list[str]) -> list[Job]:
    try:
        return named_jobs(call, ",".join(words))
    except StopError as stop:
        raise StopError(1, *stop.lines, f"slurm_suspend error: {NO_JOB}") from None


def requeue(call: Call, words: list[str]) -> int:
    with call.place.lock():
        for job in named_jobs(call, ",".join(words)):
            if job["requeue"] != "1":
                raise StopError(1, f"Requested operation is presently disabled for job {job.id}")
            if job["state"] == "PENDING":
                raise StopError(1, f"Job is pending execution for job {job.id}")
            if job["state"] == "RUNNING":
                job.update(state="COMPLETING", ending="REQUEUED")
            job["wants"] = "requeue"
            call.jobs.store(job)
    return 0


def run_write(call: Call, words: list[str]) -> int:
    """scontrol write batch_script N [FILE]: the script of a job, to a file or, for -, to stdout."""
    if words[:1] != ["batch_script"]:
        raise StopError(1, f"invalid entity:{words[0] if words else ''} for keyword:write ")
    with call.place.lock():
        job = named_jobs(call, words[1])[0]
    with open(f"{call.place.slurm}/spool/{job.id}.script", encoding="utf-8", errors="surrogateescape") as spooled:
        script = spooled.read()
    path = words[2] if len(words) > 2 else f"slurm-{job.id}.sh"
    if path == "-":
        print(script, end="")
        return 0
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(script)
    print(f"batch script for job {job.id} written to {path}")
    return 0


def refuse_suspend(call: Call, words: list[str]) -> int:
    complain(f"Access/permission denied for job {','.join(words)}")
    return 1
