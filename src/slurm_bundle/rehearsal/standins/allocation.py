"""An allocation without a batch script: asked for, waited for, and given back at the end."""

import os
import time

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.getopt import Options
from slurm_bundle.rehearsal.standins.jobs import Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.request import Request, add_job
from slurm_bundle.rehearsal.standins.site import Site

PATIENCE = 0.2  # seconds of ours after which it is told that one waits


class Allocating:
    """`with Allocating(...) as allocated:` - allocated.job is running; at the end it is given back."""

    def __init__(self, place: Place, site: Site, command: str, options: Options, name: str) -> None:
        self.place, self.command, self.jobs = place, command, Jobs(place)
        job = Request(place, site, command, options, Clock(place).now()).read()
        job.update(
            name=job["name"] or name, kind="alloc", command=name if command == "srun" else "",
            submitted_from=os.getcwd(), session=str(os.getpid()),
            said_tasks="yes" if "ntasks" in options or "ntasks-per-node" in options else "",
            said_cpus="yes" if "cpus-per-task" in options else "",
        )  # fmt: skip
        self.job = job
        self.code = 0

    def __enter__(self) -> "Allocating":
        with self.place.lock():
            add_job(self.jobs, self.job)
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back(self.code)

    def wait(self) -> None:
        """Until the job runs; tells when that takes its time."""
        told, began = False, time.monotonic()
        while True:
            job = self.jobs.load(self.job.id) or Job()
            if job["state"] == "RUNNING":
                break
            if job.has_ended:
                raise StopError(1, f"{self.command}: error: Job allocation {job.id} has been revoked")
            if not told and time.monotonic() - began > PATIENCE:
                told = True
                if self.command == "salloc":
                    complain(f"salloc: Pending job allocation {job.id}")
                complain(f"{self.command}: job {job.id} queued and waiting for resources")
            self.place.die_with_keeper()
            time.sleep(0.01)
        self.job = job
        if told:
            complain(f"{self.command}: job {job.id} has been allocated resources")

    def is_there(self) -> bool:
        return (self.jobs.load(self.job.id) or Job())["state"] == "RUNNING"

    def give_back(self, code: int = 0) -> None:
        """The allocation ends, and with it the job: as what ran in it did."""
        with self.place.lock():
            job = self.jobs.load(self.job.id)
            if job is not None and not job.has_ended and job["state"] != "COMPLETING":
                job.update(state="COMPLETING", ending="FAILED" if code else "COMPLETED", wants="end", exit=f"{code}:0")
                self.jobs.store(job)
