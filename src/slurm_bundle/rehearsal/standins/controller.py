"""What slurmctld and slurmd do, in one: jobs start when they may, run as processes here, and end as they must.

It looks at the queue whenever a command has changed something (PLACE/slurm/changed), a process has ended, or a time
has come that was waited for.
"""

import os

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.faults import count_call, read_faults
from slurm_bundle.rehearsal.standins.hostlist import expand, expand_counts
from slurm_bundle.rehearsal.standins.jobs import WHY_CANCELLED, Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.runner import Runner
from slurm_bundle.rehearsal.standins.scheduler import choose_nodes, hindrance
from slurm_bundle.rehearsal.standins.site import Site
from slurm_bundle.rehearsal.standins.times import show_stamp

NEVER = float("inf")
LEAST_WAIT = 1.0  # seconds of ours that a job has to end by itself, however fast the clock there runs
LOOK_AGAIN = 0.02  # seconds of ours between two looks at whether its processes are gone
REQUEUE_DELAY = 120  # seconds after which Slurm lets a requeued job start
REASONS = {"TIMEOUT": "TimeLimit", "NODE_FAIL": "NodeDown", "FAILED": "NonZeroExitCode", "OUT_OF_MEMORY": "OutOfMemory"}


class Controller:
    def __init__(self, place: Place) -> None:
        self.place, self.clock, self.jobs = place, Clock(place), Jobs(place)
        self.site = Site(place)
        self.runner = Runner(place, self.site)
        self.seen = -1
        self.due = 0.0
        self.ended = False

    def note_end(self, process: int, code: int) -> None:
        """A process has ended; it may be that of a job."""
        self.runner.note_end(process, code)
        self.ended = True

    def tick(self) -> None:
        size = self.changes()
        if size == self.seen and not self.ended and self.clock.now() < self.due:
            return
        self.ended = False
        with self.place.lock():
            self.step(self.clock.now())
            self.seen = self.changes()

    def changes(self) -> int:
        try:
            return os.stat(f"{self.place.slurm}/changed").st_size
        except FileNotFoundError:
            return 0

    def wait_until(self, moment: float) -> None:
        self.due = min(self.due, moment)

    def step(self, now: float) -> None:
        """Move every job on as far as it goes."""
        self.due = NEVER
        everyone = self.jobs.all()
        active = [job for job in everyone if not job.has_ended]
        for job in active:
            self.meet_fault(job, now)
        for job in active:
            if job["wants"]:
                self.do_what_it_wants(job, now)
        for job in active:
            self.move_on(job, now)
        self.start_pending(everyone, now)

    def move_on(self, job: Job, now: float) -> None:
        if job["state"] == "RUNNING":
            self.watch(job, now)
        elif job["state"] == "COMPLETING":
            self.complete(job, now)
        elif job["state"] == "CONFIGURING":
            self.configure(job, now)

    # Pending

    def start_pending(self, everyone: list[Job], now: float) -> None:
        pending = [job for job in everyone if job["state"] == "PENDING"]
        pending.sort(key=lambda job: (-job.number("priority"), int(job.id)))
        short = False
        for job in pending:
            reason = hindrance(job, everyone, now)
            ready = (job.time("submit") or now) + max(self.site.number("pending"), job.number("pending"))
            if reason == "BeginTime":
                self.wait_until(job.time("begin") or now)
            elif not reason and (now < ready or job["stuck"]):
                reason = job["stuck"] or "Priority"
                self.wait_until(ready if not job["stuck"] else NEVER)
            elif not reason:
                allocation = choose_nodes(self.site, job, everyone)
                if allocation is not None:
                    allocation.write(job)
                    job.update(state="CONFIGURING", reason="None", start=repr(now), eligible=repr(now))
                    self.configure(job, now)
                    continue
                reason = "Priority" if short else "Resources"
                short = True
            if reason != job["reason"]:
                job["reason"] = reason
                self.jobs.store(job)

    def configure(self, job: Job, now: float) -> None:
        ready = (job.time("start") or now) + self.site.number("configuring")
        if now < ready:
            self.wait_until(ready)
            self.jobs.store(job)
            return
        job.update(state="RUNNING", start=repr(now))
        if job["kind"] == "batch":
            self.open_batch_step(job, now)
            if not self.runner.start(job):
                self.settle(job, "FAILED", "0:53", now, reason="JobLaunchFailure")
                return
        self.jobs.store(job)
        self.wait_until(now)  # to look at it once more as a running one

    def open_batch_step(self, job: Job, now: float) -> None:
        node = expand(job["nodelist"])[0]
        cpus = str(expand_counts(job["cpus_layout"])[0])
        steps = [("batch", node), *([("extern", job["nodelist"])] if self.site["extern"] else [])]
        for name, nodes in steps:
            step = Job(id=name, job=job.id, name=name, state="RUNNING", exit="0:0", start=repr(now), nodelist=nodes)
            step.update(tasks=str(len(expand(nodes))), cpus=cpus)
            self.jobs.store_step(step)

    # Running

    def watch(self, job: Job, now: float) -> None:
        end = job.limit_end()
        code = self.runner.code(job.id)
        if job["kind"] == "batch" and code is not None:
            self.end_itself(job, code, now)
        elif end is not None and now >= end:
            self.begin_end(job, "TIMEOUT", now)
        elif end is not None:
            self.wait_until(end)

    def end_itself(self, job: Job, code: int, now: float) -> None:
        self.runner.kill(job.id, 9)
        if code == 0:
            self.settle(job, "COMPLETED", "0:0", now)
        elif code > 0:
            self.settle(job, "FAILED", f"{code}:0", now)
        else:
            self.settle(job, "FAILED", f"0:{-code}", now, reason="JobLaunchFailure" if code == -9 else "")

    def begin_end(self, job: Job, state: str, now: float) -> None:
        """A running job has to end: it is told, asked, and after a while made to."""
        job.update(state="COMPLETING", ending=state, reason=REASONS.get(state, job["reason"]), wants="")
        if job["kind"] == "batch":
            node = expand(job["nodelist"])[0]
            when = f"{show_stamp(now)}{WHY_CANCELLED.get(state, '')}"
            self.runner.write_log(job, f"slurmstepd: error: *** JOB {job.id} ON {node} CANCELLED AT {when} ***\n")
        wait = max(self.site.number("kill_wait"), LEAST_WAIT * self.clock.read()[2])
        job["kill_at"] = repr(now + wait)
        self.wait_until(now + wait)
        self.jobs.store(job)
        self.runner.kill(job.id, 15)
        self.end_steps(job)

    def end_steps(self, job: Job) -> None:
        """Ask the steps that are no children of the batch script to end."""
        for step in self.jobs.steps(job.id):
            if step["state"] == "RUNNING" and step["pid"] and job["kind"] != "batch":
                self.runner.signal_process(int(step["pid"]), 15)

    def complete(self, job: Job, now: float) -> None:
        """Wait for the processes of a job that has to end; those that take too long are killed."""
        moment = job.time("kill_at") or now
        if self.runner.is_running(job.id) and now >= moment:
            self.runner.kill(job.id, 9)
            self.wait_until(now + 1)
            return
        if now < moment and self.runner.has_processes(job.id):
            self.wait_until(min(moment, now + LOOK_AGAIN * self.clock.read()[2]))
            return
        self.runner.kill(job.id, 9)
        state = job["ending"]
        code = "0:125" if state == "OUT_OF_MEMORY" else job["exit"] or "0:0"
        self.settle(job, state, code, now, reason=REASONS.get(state, "None"))

    def settle(self, job: Job, state: str, code: str, now: float, *, reason: str = "") -> None:
        """The job has ended; its steps have, too."""
        killed = (self.runner.code(job.id) or 0) < 0
        self.runner.forget(job.id)
        derived = 0, 0
        for step in self.jobs.steps(job.id):
            if step["state"] == "RUNNING":
                self.settle_step(step, state, code, killed, now)
                self.jobs.store_step(step)
            if step.id.isdigit() and step["exit"]:
                code_of_step, _, signal = step["exit"].partition(":")
                derived = max(derived, (int(code_of_step), int(signal)))
        if state == "REQUEUED":
            begin = now + REQUEUE_DELAY
            job.update(
                state="PENDING", ending="", wants="", reason="BeginTime", begin=repr(begin), submit=repr(now), start="",
                end="", eligible="", nodelist="", layout="", cpus_layout="", restarts=str(job.number("restarts") + 1),
            )  # fmt: skip
            self.wait_until(begin)
        else:
            job.update(
                state=state, ending="", wants="", exit=code, derived=f"{derived[0]}:{derived[1]}", end=repr(now),
                reason=reason or REASONS.get(state, "None"),
            )  # fmt: skip
        self.jobs.store(job)
        self.due = now

    def settle_step(self, step: Job, state: str, code: str, killed: bool, now: float) -> None:
        ends = {"COMPLETED": ("COMPLETED", "0:0"), "FAILED": ("FAILED", code), "TIMEOUT": ("TIMEOUT", "0:0")}
        ended, exit_code = ends.get(state, ("CANCELLED", "0:15"))
        if code == "0:53" or code == "0:9":
            ended, exit_code = "CANCELLED", code
        if state == "OUT_OF_MEMORY":
            ended, exit_code = "OUT_OF_MEMORY", "0:125"
        if state == "NODE_FAIL":
            exit_code = ""
        if step.id == "extern":
            ended, exit_code = "COMPLETED", "0:0"
        elif state == "TIMEOUT" and (killed or step.id != "batch"):
            ended, exit_code = "CANCELLED", "0:15"
        step.update(state=ended, exit=exit_code, end=repr(now))

    # What commands and faults ask for

    def do_what_it_wants(self, job: Job, now: float) -> None:
        want, _, rest = job["wants"].partition(" ")
        job["wants"] = ""
        if want == "signal":
            number, _, whom = rest.partition(" ")
            self.runner.signal(job.id, int(number), whom)
            self.jobs.store(job)
        elif want == "end":
            job["kill_at"] = repr(now)
            self.jobs.store(job)
        elif want == "requeue":
            self.begin_end(job, "REQUEUED", now)
        elif want == "cancel":
            self.begin_end(job, "CANCELLED", now)

    def meet_fault(self, job: Job, now: float) -> None:
        """on=job: kind= of the job; pending= for so many seconds, or forever with reason= and start=; and so many
        seconds after it began (at=): text= for its log, state= how it ends, fly= how far the clock jumps.
        """
        if not job["role"]:
            return
        kind = "job" if job["role"] == "own" else job["role"]
        for fault in read_faults(self.place):
            if fault["on"] != "job" or fault.get("kind", kind) != kind:
                continue
            if job["fault"] != fault["number"]:
                if job["fault"] or count_call(self.place, fault["number"]) > int(fault.get("times", "1")):
                    continue
                job["fault"] = fault["number"]
                self.begin_fault(job, fault, now)
            self.go_on_with_fault(job, fault, now)

    def begin_fault(self, job: Job, fault: dict[str, str], now: float) -> None:
        if fault.get("pending") == "forever":
            job.update(stuck=fault.get("reason", "Resources"), estimate=repr(now + float(fault.get("start", "86400"))))
        elif "pending" in fault:
            job["pending"] = fault["pending"]
        self.jobs.store(job)

    def go_on_with_fault(self, job: Job, fault: dict[str, str], now: float) -> None:
        """Strike once, `at` seconds after the job has started, or after it was submitted where it is to be stuck."""
        since = job.time("submit") if job["stuck"] else job.time("start")
        if job["struck"] or since is None or job["state"] not in ("RUNNING", "PENDING") or "at" not in fault:
            return
        moment = since + float(fault["at"])
        if now < moment:
            self.wait_until(moment)
            return
        job["struck"] = "yes"
        self.jobs.store(job)
        if "fly" in fault:
            limit = (job.limit_end() or now) - now
            self.clock.skip(limit if fault["fly"] == "limit" else float(fault["fly"]))
            self.due = 0
        if "text" in fault:
            self.runner.write_log(job, fault["text"] + "\n")
        if "state" in fault:
            self.begin_end(job, fault["state"], now)
