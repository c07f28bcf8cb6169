"""srun: run tasks side by side on the nodes of a job, and wait for them."""

import _signal
import os
import time

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.container import Container, check_options
from slurm_bundle.rehearsal.standins.environment import export, fill_pattern, path_for
from slurm_bundle.rehearsal.standins.getopt import Options
from slurm_bundle.rehearsal.standins.hostlist import compress, expand, ranges
from slurm_bundle.rehearsal.standins.jobs import WHY_CANCELLED, Job, Jobs
from slurm_bundle.rehearsal.standins.launching import (
    Layout,
    distribution_of,
    plan_step,
    step_variables,
    task_variables,
)
from slurm_bundle.rehearsal.standins.options import read_options
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.site import Site
from slurm_bundle.rehearsal.standins.times import show_stamp

SIGNALS = {
    1: "Hangup",
    2: "Interrupt",
    6: "Aborted",
    9: "Killed",
    11: "Segmentation fault",
    13: "Broken pipe",
    15: "Terminated",
}


def run(place: Place, words: list[str]) -> int:
    site = Site(place)
    options = read_options("srun", words)
    if "version" in options:
        print(site["version"])
        return 0
    check_mpi(site, options)
    check_options("srun", options)
    if not options.rest:
        raise StopError(1, "srun: fatal: No command given to execute.")
    jobs, clock = Jobs(place), Clock(place)
    number = options.get("jobid")
    if number is not None:
        with place.lock():  # the keeper notes that a job runs a moment after it has started it
            job = jobs.load(number)
        if job is None or job["state"] != "RUNNING":
            raise StopError(
                1,
                f"srun: error: Unable to confirm allocation for job {number}: Invalid job id specified",
                f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {number}",
            )
        return Step(place, site, jobs, clock, job, options, words).run()
    from slurm_bundle.rehearsal.standins.allocation import Allocating

    with Allocating(place, site, "srun", options, os.path.basename(options.rest[0])) as allocated:
        allocated.code = Step(place, site, jobs, clock, allocated.job, options, words).run()
    return allocated.code


def check_mpi(site: Site, options: Options) -> None:
    name = options.get("mpi")
    if name == "list":
        print("MPI plugin types are...\n\t" + "\n\t".join(site.words("mpi")))
        print("specific pmix plugin versions available: pmix_v4")
        raise StopError(0)
    if name is not None and name.partition("_")[0] not in site.words("mpi"):
        raise StopError(
            1,
            f"srun: error: Couldn't find the specified plugin name for mpi/{name} looking at all files",
            f"srun: error: cannot find mpi plugin for mpi/{name}",
            f"srun: error: MPI: Cannot create context for mpi/{name}",
            "srun: error: MPI: Unable to load any plugin",
            f"srun: error: Invalid MPI type '{name}', --mpi=list for acceptable types",
        )


class Step:
    """A step of a job: its tasks are children of this process."""

    def __init__(
        self, place: Place, site: Site, jobs: Jobs, clock: Clock, job: Job, options: Options, words: list[str]
    ) -> None:
        self.place, self.site, self.jobs, self.clock = place, site, jobs, clock
        self.job, self.options, self.words = job, options, words
        self.tasks: dict[int, int] = {}  # process -> rank
        self.ended: dict[int, int] = {}  # rank -> exit code, below 0 a signal
        self.cancelled = False

    def run(self) -> int:
        self.layout = self.take_room()
        self.container = Container(self.place, self.site, self.options, self.job.id, self.id)
        self.container.warn()
        _signal.signal(_signal.SIGTERM, lambda *_: self.abort())
        try:
            self.launch()
            self.wait()
            for helper in self.helpers:
                os.waitpid(helper, 0)
        except StopError:
            self.finish("CANCELLED", "0:0")
            raise
        self.container.save(self.code())
        self.tell()
        self.finish(*self.outcome())
        return self.code()

    # The step among the others of its job

    def take_room(self) -> Layout:
        """Nodes for the tasks, and a record of the step; waits where other steps hold them."""
        told = False
        while True:
            with self.place.lock():
                running = [step for step in self.jobs.steps(self.job.id) if step["state"] == "RUNNING"]
                holding = [step for step in running if step.id.isdigit() and not step["shares"]]
                held = {node for step in holding for node in expand(step["nodelist"])}
                plan = plan_step(self.job, self.options, held, quiet=told)
                if held.isdisjoint(plan.nodes) or self.shares():
                    self.id = self.jobs.new_step(self.job.id)
                    self.record = self.describe(plan)
                    self.jobs.store_step(self.record)
                    break
            if not told:
                told = True
                doing = f"Job {self.job.id} step creation temporarily disabled, retrying"
                complain(f"srun: {doing} (Requested nodes are busy)")
            self.place.die_with_keeper()
            time.sleep(0.02)
        if told:
            complain(f"srun: Step created for job {self.job.id}")
        return plan

    def shares(self) -> bool:
        return "overlap" in self.options or "exact" in self.options

    def describe(self, plan: Layout) -> Job:
        named = any(word.startswith(("-J", "--job-name")) for word in self.words)
        name = (named and self.options.get("job-name")) or os.path.basename(self.options.rest[0])
        return Job(
            id=self.id, job=self.job.id, name=name, state="RUNNING", exit="0:0",
            start=repr(self.clock.now()), nodelist=compress(plan.nodes), tasks=str(plan.count), cpus=str(plan.cpus),
            distribution=distribution_of(plan), submit_line=" ".join(["srun", *self.words]), pid=str(os.getpid()),
            shares="yes" if self.shares() else "",
        )  # fmt: skip

    def finish(self, state: str, code: str) -> None:
        with self.place.lock():
            self.record.update(state=state, exit=code, end=repr(self.clock.now()))
            self.jobs.store_step(self.record)
            self.place.touch()

    # The tasks

    def launch(self) -> None:
        options = self.options
        plain = {"SLURM_SUBMIT_DIR": self.job["submitted_from"]}  # with --export=NONE not even PATH comes along
        chosen = export(dict(os.environ), options.get("export"), plain)
        if "PATH" in chosen:
            chosen["PATH"] = path_for(self.place, "node", chosen["PATH"])
        shared = {**chosen, **step_variables(self.job, self.site, self.id, self.layout, options)}
        outputs = Outputs(self.job, self.id, options)
        for task in self.layout.ranks():
            rank, index, _ = task
            own = {**shared, **task_variables(self.job, self.id, self.layout, task, options.get("mpi") or "")}
            out, err = outputs.open(rank, task[2], self.layout.nodes[index])
            child = os.fork()
            if not child:
                self.become(own, rank, self.layout.nodes[index], out, err)
            self.tasks[child] = rank
            outputs.close_labelled()
        self.helpers = outputs.helpers

    def become(self, environment: dict[str, str], rank: int, node: str, out: int, err: int) -> None:
        """In the child: turn into the task. Never returns."""
        try:
            _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
            if rank:
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            environment["SLURM_TASK_PID"] = str(os.getpid())
            folder = self.options.get("chdir") or os.getcwd()
            if self.container.wanted:
                trouble = self.container.start(node)
                if trouble:
                    self.tell_trouble(trouble)
                    os._exit(1)
                folder = self.container.workdir_here()
            self.enter(folder)
            self.execute(environment)
        except BaseException as error:
            complain(f"slurmstepd: error: {error}")
        finally:
            os._exit(1)

    def tell_trouble(self, trouble: list[str]) -> None:
        """Why a container did not start, as slurmstepd and its plugin say it."""
        for line in (
            *(f"pyxis: {line}" for line in trouble),
            "spank: required plugin spank_pyxis.so: task_init() failed with rc=-1",
            "Failed to invoke spank plugin stack",
        ):
            complain(f"slurmstepd: error: {line}")

    def enter(self, folder: str) -> None:
        try:
            os.chdir(folder)
        except OSError as error:
            complain(f"slurmstepd: error: couldn't chdir to `{folder}': {error.strerror}: going to /tmp instead")
            os.chdir("/tmp")

    def execute(self, environment: dict[str, str]) -> None:
        """execve the command, looked up in the PATH of the task; 2 and 13 where that fails, as slurmstepd has it."""
        name = self.options.rest[0]
        path = name
        if "/" not in name:
            folders = environment.get("PATH", "").split(":")
            found = [f"{folder}/{name}" for folder in folders if folder and os.access(f"{folder}/{name}", os.X_OK)]
            path = found[0] if found else name
        elif not name.startswith("/"):
            path = f"{os.getcwd()}/{name}"
        try:
            os.execve(path, self.options.rest, environment)
        except OSError as error:
            complain(f"slurmstepd: error: execve(): {path}: {error.strerror}")
            os._exit(error.errno or 1)

    # Their ends

    def wait(self) -> None:
        pause = 0.001
        while self.tasks:
            done, status = os.waitpid(-1, os.WNOHANG)
            if not done:
                self.place.die_with_keeper()
                time.sleep(pause)
                pause = min(pause * 1.5, 0.03)
                continue
            pause = 0.001
            if done not in self.tasks:
                self.helpers.remove(done)
                continue
            rank = self.tasks.pop(done)
            self.ended[rank] = os.waitstatus_to_exitcode(status)
            wish = self.options.get("kill-on-bad-exit")
            if self.ended[rank] and wish not in (None, "0") and self.tasks and not self.cancelled:
                self.cancelled = True
                complain(f"srun: launch/slurm: _step_signal: Terminating StepId={self.job.id}.{self.id}")
                self.tell_cancelled()
                self.signal(15)

    def tell_cancelled(self, why: str = "") -> None:
        stamp = f"{show_stamp(self.clock.now())}{why}"
        complain(
            f"slurmstepd: error: *** STEP {self.job.id}.{self.id} ON {self.layout.nodes[0]} CANCELLED AT {stamp} ***"
        )

    def abort(self) -> None:
        """On SIGTERM: the job is being ended, so the tasks are."""
        if not self.cancelled:
            self.cancelled = True
            wait = self.site.number("kill_wait") + 2
            complain(f"srun: Job step aborted: Waiting up to {wait} seconds for job step to finish.")
            ending = (self.jobs.load(self.job.id) or Job())["ending"]
            self.tell_cancelled(WHY_CANCELLED.get(ending, ""))
            self.signal(15)

    def signal(self, number: int) -> None:
        for process in self.tasks:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue

    def code(self) -> int:
        return max((code if code >= 0 else 128 - code for code in self.ended.values()), default=0)

    def outcome(self) -> tuple[str, str]:
        worst = max(self.ended.values(), default=0)
        signals = [-code for code in self.ended.values() if code < 0]
        if self.cancelled:
            return "CANCELLED", "0:15"
        if signals:
            return "CANCELLED", f"0:{signals[0]}"
        return ("FAILED", f"{worst}:0") if worst else ("COMPLETED", "0:0")

    def tell(self) -> None:
        """Say which tasks ended badly: those of a node that ended alike on one line."""
        groups: dict[tuple[str, int], list[str]] = {}
        for rank, index, _ in self.layout.ranks():
            code = self.ended.get(rank, 0)
            if code:
                groups.setdefault((self.layout.nodes[index], code), []).append(str(rank))
        for (node, code), ranks in groups.items():
            what = f"Exited with exit code {code}" if code > 0 else SIGNALS.get(-code, f"Signal {-code}")
            complain(f"srun: error: {node}: {'tasks' if len(ranks) > 1 else 'task'} {ranges(ranks)}: {what}")


class Outputs:
    """Where the tasks write: srun's own stdout and stderr, or the files of --output and --error."""

    def __init__(self, job: Job, step: str, options: Options) -> None:
        self.job, self.step, self.options = job, step, options
        self.files: dict[str, int] = {}
        self.helpers: list[int] = []
        self.labelled: list[int] = []

    def open(self, rank: int, local: int, node: str) -> tuple[int, int]:
        out = self.open_file(self.options.get("output"), rank, local, node)
        err = self.open_file(self.options.get("error"), rank, local, node)
        standard = 1 if out is None else out
        error = err if err is not None else 2 if out is None else out
        if "label" in self.options:
            return self.label(standard, rank), self.label(error, rank)
        return standard, error

    def label(self, target: int, rank: int) -> int:
        """A pipe whose lines come out at `target` with the rank before them."""
        read, write = os.pipe()
        helper = os.fork()
        if helper:
            os.close(read)
            self.helpers.append(helper)
            self.labelled.append(write)
            return write
        for other in [write, *self.labelled]:
            os.close(other)
        with os.fdopen(read, "rb") as lines:
            for line in lines:
                os.write(target, f"{rank}: ".encode() + line)
        os._exit(0)

    def close_labelled(self) -> None:
        """The tasks have them now; a pipe ends when nobody can write to it."""
        for write in self.labelled:
            os.close(write)
        self.labelled.clear()

    def open_file(self, pattern: str | None, rank: int, local: int, node: str) -> int | None:
        if pattern is None or pattern == "all":
            return None
        if pattern == "none":
            pattern = "/dev/null"
        path = fill_pattern(pattern, self.job, step=self.step, node=node, rank=rank, local=local)
        if path not in self.files:
            mode = os.O_APPEND if (self.options.get("open-mode") or "").startswith("a") else os.O_TRUNC
            try:
                self.files[path] = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o644)
            except OSError as error:
                raise StopError(1, f"srun: error: Could not open stdout file: {error.strerror}") from None
        return self.files[path]
