"""Turns the options of sbatch, srun and salloc into the record of a job, or refuses them in Slurm's words."""

import os

from slurm_bundle.rehearsal.standins.getopt import Options
from slurm_bundle.rehearsal.standins.hostlist import expand
from slurm_bundle.rehearsal.standins.jobs import Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain, group_name, user_name
from slurm_bundle.rehearsal.standins.site import Partition, Site
from slurm_bundle.rehearsal.standins.times import read_begin, read_limit, read_memory

DEPENDENCIES = ("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")


class Request:
    """The reading of a call's options, step by step, into `job`."""

    def __init__(self, place: Place, site: Site, command: str, options: Options, now: float) -> None:
        self.place, self.site, self.command, self.options, self.now = place, site, command, options, now
        self.job = Job()

    def refuse(self, text: str, *before: str) -> StopError:
        """What the controller says no to."""
        if "test-only" in self.options:
            return StopError(1, *[f"{self.command}: error: {line}" for line in before], f"allocation failure: {text}")
        doing = "Batch job submission failed" if self.command == "sbatch" else "Job submit/allocate failed"
        if self.command == "srun":
            doing = "Unable to allocate resources"
        return StopError(
            1, *[f"{self.command}: error: {line}" for line in before], f"{self.command}: error: {doing}: {text}"
        )

    def wrong(self, option: str) -> StopError:
        """What the command itself cannot read."""
        return StopError(255, f"{self.command}: error: Invalid --{option} specification")

    def count(self, name: str) -> int | None:
        text = self.options.get(name)
        if text is None:
            return None
        if not text.isdigit() or text == "0":
            raise StopError(1, f'{self.command}: error: Invalid numeric value "{text}" for --{name}.')
        return int(text)

    def read(self) -> Job:
        limit, memory, gpus = self.read_limit(), self.read_memory(), self.read_gpus()
        nodes = self.read_nodes()
        begin = self.read_begin()
        partition = self.find_partition()
        self.read_sizes(nodes)
        self.check_account()
        self.check_limit(limit, partition)
        self.check_fit(memory, gpus)
        given = self.options.get
        self.job.update(
            name=given("job-name") or "", user=user_name(), uid=str(os.getuid()), gid=str(os.getgid()),
            group=group_name(), account=given("account") or (self.site.words("accounts") or ["practice"])[0],
            qos=given("qos") or "normal", partition=partition.name, time_min=self.read_time_min(),
            features=given("constraint") or "", comment=given("comment") or "", network=given("network") or "",
            licenses=given("licenses") or "", requested=given("nodelist") or "", excluded=given("exclude") or "",
            exclusive="yes" if "exclusive" in self.options else "", hold="yes" if "hold" in self.options else "",
            requeue="0" if "no-requeue" in self.options else "1", restarts="0", nice=given("nice") or "0",
            begin="" if begin is None else repr(begin), dependency=self.read_dependency(),
            workdir=os.path.join(os.getcwd(), given("chdir") or "").rstrip("/") or "/",
            state="PENDING", reason="None", submit=repr(self.now), exit="0:0", kind="alloc",
        )  # fmt: skip
        return self.job

    def read_limit(self) -> int | None:
        text = self.options.get("time")
        limit = read_limit(text) if text else None
        if text and limit is None:
            raise self.wrong("time")
        return limit or None

    def read_time_min(self) -> str:
        text = self.options.get("time-min")
        limit = read_limit(text) if text else None
        if text and limit is None:
            raise self.wrong("time-min")
        return "" if limit is None else str(limit)

    def read_memory(self) -> int:
        for name in ("mem", "mem-per-cpu"):
            text = self.options.get(name)
            if text:
                size = read_memory(text)
                if size is None:
                    raise self.wrong(name)
                self.job["memory" if name == "mem" else "memory_per_cpu"] = str(size)
        if not self.job["memory"] and not self.job["memory_per_cpu"]:
            self.job["memory_per_cpu"] = self.site["memory_per_cpu"]
        return self.job.number("memory")

    def read_gpus(self) -> int:
        """GPUs a node, from --gpus-per-node=[TYPE:]N or --gres=gpu[:TYPE]:N."""
        text = self.options.get("gpus-per-node")
        for item in (self.options.get("gres") or "").split(","):
            name, _, number = item.partition(":")
            if item and name != "gpu" and not self.site["lenient"]:
                raise StopError(1, f"{self.command}: error: Invalid generic resource (gres) specification")
            text = (number or "1") if name == "gpu" else text
        if not text:
            return 0
        number = text.rpartition(":")[2]
        if not number.isdigit():
            raise self.refuse("Requested node configuration is not available")
        self.job["gpus"] = number
        return int(number)

    def read_nodes(self) -> int | None:
        text = self.options.get("nodes")
        if text is None:
            return None
        least, _, most = text.partition("-")
        if not least.isdigit() or (most and not most.isdigit()):
            raise StopError(255, f'{self.command}: error: "{text}" is not a valid node count')
        return int(least)

    def read_begin(self) -> float | None:
        text = self.options.get("begin")
        if text is None:
            return None
        begin = read_begin(text, self.now)
        if begin is None:
            place = len("tomorrow") if text.startswith("tomorrow") else 0
            found = f"Invalid time specification (pos={place}): {text}"
            raise StopError(255, found, f"{self.command}: error: Invalid --begin specification")
        return begin if begin > self.now else None

    def read_sizes(self, nodes: int | None) -> None:
        """Tasks, nodes and cpus: what was not said follows from what was."""
        tasks, each = self.count("ntasks"), self.count("cpus-per-task")
        per_node = self.count("ntasks-per-node")
        if tasks is not None and nodes is not None and nodes > tasks:
            complain(
                f"{self.command}: Warning: can't run {tasks} processes on {nodes} nodes, setting nnodes to {tasks}"
            )
            nodes = tasks
        asked = expand(self.options.get("nodelist") or "")
        if nodes is None and tasks is not None and per_node:
            nodes = -(-tasks // per_node)
        least = 1 if nodes is not None else -(-(tasks or 1) * (each or 1) // self.site.cpus)
        nodes = max(nodes or least, len(asked))
        self.job.update(
            nodes=str(nodes), tasks=str(tasks or nodes * (per_node or 1)), cpus_per_task=str(each or 1),
            tasks_per_node=str(per_node or 0), said_nodes="yes" if "nodes" in self.options else "",
        )  # fmt: skip

    def find_partition(self) -> Partition:
        names = (self.options.get("partition") or self.site.partitions[0].name).split(",")
        for name in names:
            if self.site.partition(name) is None:
                raise self.refuse("Invalid partition name specified", f"invalid partition specified: {name}")
        found = self.site.partition(names[0])
        assert found is not None
        return found

    def check_account(self) -> None:
        known = self.site.words("accounts")
        if known and (self.options.get("account") or known[0]) not in known:
            raise self.refuse("Invalid account or account/partition combination specified")
        if not self.site["lenient"]:
            self.check_names()

    def check_names(self) -> None:
        """Refuse what this site does not have."""
        if self.options.get("reservation"):
            raise self.refuse("Requested reservation is invalid")
        if self.options.get("licenses"):
            raise self.refuse("Invalid license specification")
        features = self.options.get("constraint") or ""
        for mark in "&|[]()*":
            features = features.replace(mark, " ")
        if set(features.split()) - set(self.site.words("features")):
            raise self.refuse("Invalid feature specification")

    def check_limit(self, limit: int | None, partition: Partition) -> None:
        longest = partition.longest
        if limit is not None and longest >= 0 and (limit > longest or limit < 0):
            raise self.refuse("Requested time limit is invalid (missing or exceeds some limit)")
        self.job["limit"] = str(limit if limit is not None else partition.usual)

    def check_fit(self, memory: int, gpus: int) -> None:
        """Refuse what no free cluster could give."""
        impossible = "Requested node configuration is not available"
        unknown = set(expand(self.job["requested"] or self.options.get("nodelist") or "")) - set(self.site.nodes)
        left = set(self.site.nodes) - set(expand(self.options.get("exclude") or ""))
        nodes, tasks, each = (self.job.number(name) for name in ("nodes", "tasks", "cpus_per_task"))
        if unknown:
            raise self.refuse("Invalid node name specified")
        if memory > self.site.memory:
            raise self.refuse(impossible, "Memory specification can not be satisfied")
        if tasks * each > self.site.cpus * len(self.site.nodes):
            raise self.refuse("More processors requested than permitted")
        if each > self.site.cpus:
            raise self.refuse(impossible, "CPU count per node can not be satisfied")
        if nodes > len(self.site.nodes) and left == set(self.site.nodes):
            raise self.refuse("Node count specification invalid")
        if gpus > self.site.gpus or nodes > len(left):
            raise self.refuse(impossible)

    def read_dependency(self) -> str:
        """As typed; what it means is looked at when the job might start (scheduler.py)."""
        text = self.options.get("dependency") or ""
        for part in text.replace("?", ",").split(","):
            kind, _, ids = part.partition(":")
            if part and (kind not in DEPENDENCIES or (kind != "singleton" and not ids)):
                raise self.refuse("Job dependency problem")
        return text


def add_job(jobs: Jobs, job: Job) -> None:
    """Give the job its id and its place in the queue. Whoever calls holds the lock."""
    number = jobs.new_id()
    job["id"] = str(number)
    job["priority"] = str(4294901760 - number - 3)
    jobs.store(job)
