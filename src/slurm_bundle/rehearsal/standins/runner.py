"""Runs batch scripts as processes of this machine, each in a session of its own."""

import os
import sys

from slurm_bundle.rehearsal.standins.description import log_paths, place_of
from slurm_bundle.rehearsal.standins.environment import batch_variables, export, path_for, plain_environment
from slurm_bundle.rehearsal.standins.hostlist import expand
from slurm_bundle.rehearsal.standins.jobs import Job
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.site import Site


class Runner:
    def __init__(self, place: Place, site: Site) -> None:
        self.place, self.site = place, site
        self.processes: dict[str, int] = {}  # job -> process, which leads its group
        self.codes: dict[str, int] = {}  # job -> how its process ended

    def note_end(self, process: int, code: int) -> None:
        for job, mine in self.processes.items():
            if mine == process:
                self.codes[job] = code

    def code(self, job: str) -> int | None:
        return self.codes.get(job)

    def is_running(self, job: str) -> bool:
        return job in self.processes and job not in self.codes

    def has_processes(self, job: str) -> bool:
        """Whether anything of its group is left, such as an srun that still has something to say."""
        try:
            os.killpg(self.processes[job], 0)
        except (KeyError, ProcessLookupError, PermissionError):
            return False
        return True

    def forget(self, job: str) -> None:
        self.processes.pop(job, None)
        self.codes.pop(job, None)

    def start(self, job: Job) -> bool:
        """Start the batch script; False where its log cannot be opened."""
        out, err = log_paths(job)
        # Always appending, so that what write_log adds is not written over.
        mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if job["append"] else os.O_TRUNC)
        try:
            first = os.open(out, mode, 0o644)
            second = first if err == out else os.open(err, mode, 0o644)
            source = os.open(place_of(job, job["stdin"]), os.O_RDONLY)
        except OSError:
            return False
        environment = self.environment(job)
        words = self.words(job)
        child = os.fork()
        if not child:
            become(words, environment, job["workdir"], (source, first, second))
        for file in {first, second, source}:
            os.close(file)
        self.processes[job.id] = child
        self.place.note_group(child)
        return True

    def environment(self, job: Job) -> dict[str, str]:
        with open(f"{self.place.slurm}/spool/{job.id}.env", encoding="utf-8", errors="surrogateescape") as file:
            pairs = [item.partition("=") for item in file.read().split("\0") if item]
        sent = {name: value for name, _, value in pairs}
        plain = plain_environment(self.place, sent.get("HOME", self.place.home_there()), job["user"])
        chosen = export(sent, job["export"] or None, plain)
        if job["export"]:
            chosen["SLURM_EXPORT_ENV"] = job["export"]
        chosen.update(batch_variables(job, self.site), TMPDIR=self.place.tmp)
        chosen["PATH"] = path_for(self.place, "node", chosen.get("PATH", ""))
        return chosen

    def words(self, job: Job) -> list[str]:
        """The command line of the job: its script, as slurmd keeps it; or a play in place of the user's own script."""
        if job["role"] == "own" and os.path.exists(f"{self.place.root}/play"):
            start = f"{os.path.dirname(__file__)}/start.py"
            return [
                sys.executable,
                "-ISE",
                start,
                self.place.root,
                "node",
                "play",
                "job",
                os.path.basename(job["command"]),
            ]
        folder = f"{self.place.root}/nodes/{expand(job['nodelist'])[0]}/job{int(job.id):05d}"
        os.makedirs(folder, exist_ok=True)
        script = f"{folder}/slurm_script"
        with open(f"{self.place.slurm}/spool/{job.id}.script", "rb") as source, open(script, "wb") as target:
            target.write(source.read())
        os.chmod(script, 0o700)
        return [script, *[word for word in job["arguments"].split("\0") if job["arguments"]]]

    def write_log(self, job: Job, text: str) -> None:
        """Add a line to the error log of a job, as slurmstepd does."""
        if job["kind"] != "batch":
            return
        try:
            with open(log_paths(job)[1], "a", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        except OSError:
            return

    def kill(self, job: str, number: int) -> None:
        """Send a signal to all processes of a job."""
        if job in self.processes:
            try:
                os.killpg(self.processes[job], number)
            except (ProcessLookupError, PermissionError):
                return

    def signal(self, job: str, number: int, whom: str) -> None:
        """scancel --signal: to the batch shell alone, to all, or to the steps alone (which here are its group, too)."""
        if whom == "batch" and job in self.processes:
            self.signal_process(self.processes[job], number)
        else:
            self.kill(job, number)

    def signal_process(self, process: int, number: int) -> None:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return


def become(words: list[str], environment: dict[str, str], folder: str, files: tuple[int, int, int]) -> None:
    """In the child: turn into the batch script. Never returns."""
    try:
        os.setsid()
        for target, file in enumerate(files):
            os.dup2(file, target)
        try:
            os.chdir(folder)
        except OSError:
            os.chdir("/tmp")
        os.execve(words[0], words, environment)
    except OSError as error:
        os.write(2, f"slurmstepd: error: execve(): {words[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(1)
