"""The jobs of the practice cluster: a record each in PLACE/slurm/jobs, and one for each step in PLACE/slurm/steps.

A job's record has what was asked for (request.py) and what became of it:
    state       PENDING CONFIGURING RUNNING COMPLETING, or how it ended
    ending      while COMPLETING: how it will have ended
    reason      why it is pending, or how it came to fail
    submit eligible start end    seconds by the clock there; empty where that is not known (yet)
    nodelist    where it runs or ran;  layout: how many tasks on each of these nodes
    exit        CODE:SIGNAL
    wants       what a command asks of the keeper: cancel, requeue, end
"""

import os

from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.records import load_record, store_record

STATES = {
    "PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F",
    "TIMEOUT": "TO", "NODE_FAIL": "NF", "PREEMPTED": "PR", "BOOT_FAIL": "BF", "DEADLINE": "DL", "OUT_OF_MEMORY": "OOM",
    "COMPLETING": "CG", "CONFIGURING": "CF", "RESIZING": "RS", "RESV_DEL_HOLD": "RD", "REQUEUED": "RQ",
    "REQUEUE_FED": "RF", "REQUEUE_HOLD": "RH", "REVOKED": "RV", "SIGNALING": "SI", "SPECIAL_EXIT": "SE",
    "STAGE_OUT": "SO", "STOPPED": "ST",
}  # fmt: skip
# What slurmstepd adds to "CANCELLED AT ..." in the log, by how the job ends.
WHY_CANCELLED = {
    "TIMEOUT": " DUE TO TIME LIMIT",
    "NODE_FAIL": " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
    "PREEMPTED": " DUE TO PREEMPTION",
}
WAITING = ("PENDING",)
ACTIVE = ("CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED")


class Job(dict[str, str]):
    """The record of a job or a step: every value is a text, empty where there is none."""

    def __missing__(self, name: str) -> str:
        return ""

    def number(self, name: str, default: int = 0) -> int:
        return int(self[name] or default)

    def time(self, name: str) -> float | None:
        return float(self[name]) if self[name] else None

    @property
    def id(self) -> str:
        return self["id"]

    @property
    def has_ended(self) -> bool:
        return self["state"] not in WAITING and self["state"] not in ACTIVE

    @property
    def shown_id(self) -> str:
        """As squeue shows it: 7, or 7_1 for a task of an array."""
        return f"{self['array']}_{self['task']}" if self["array"] else self.id

    def elapsed(self, now: float) -> float:
        start, end = self.time("start"), self.time("end")
        return 0 if start is None or self["state"] in WAITING else max(0, (now if end is None else end) - start)

    def limit_end(self) -> float | None:
        """When it reaches its time limit; None where it has not started or has no limit."""
        start = self.time("start")
        return None if start is None or self.number("limit") < 0 else start + self.number("limit")


class Jobs:
    """All jobs of a place. Whoever changes one holds the place's lock meanwhile."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.folder = f"{place.slurm}/jobs"

    def load(self, job: str) -> Job | None:
        record = load_record(f"{self.folder}/{job}") if job.isdigit() else {}
        return Job(record) if record else None

    def store(self, job: Job) -> None:
        store_record(f"{self.folder}/{job.id}", job)
        self.place.touch()

    def all(self) -> list[Job]:
        """Every job, in the order of the ids."""
        names = sorted((name for name in os.listdir(self.folder) if name.isdigit()), key=int)
        return [job for job in map(self.load, names) if job is not None]

    def new_id(self) -> int:
        path = f"{self.place.slurm}/last_id"
        last = int(load_record(path).get("id", "0")) + 1
        store_record(path, {"id": str(last)})
        return last

    def select(self, text: str, jobs: list[Job]) -> list[Job]:
        """Those that an id names: 7, all tasks of array 7, or 7_1."""
        array, _, task = text.partition("_")
        if task:
            return [job for job in jobs if job["array"] == array and job["task"] == task]
        return [job for job in jobs if text in (job.id, job["array"])]

    # Steps: batch, extern, 0, 1, ...

    def step_path(self, job: str, step: str) -> str:
        return f"{self.place.slurm}/steps/{job}.{step}"

    def store_step(self, step: Job) -> None:
        store_record(self.step_path(step["job"], step.id), step)

    def load_step(self, job: str, step: str) -> Job:
        return Job(load_record(self.step_path(job, step)))

    def steps(self, job: str) -> list[Job]:
        """The steps of a job: batch, extern, then those of srun in their order."""
        order = {"batch": -2, "extern": -1}
        found = [name.partition(".") for name in os.listdir(f"{self.place.slurm}/steps")]
        names = [step for owner, _, step in found if owner == job and (step in order or step.isdigit())]
        names.sort(key=lambda name: order[name] if name in order else int(name))
        return [self.load_step(job, name) for name in names]

    def new_step(self, job: str) -> str:
        taken = [step.id for step in self.steps(job) if step.id.isdigit()]
        return str(len(taken))
