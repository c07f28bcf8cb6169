"""A practice cluster: makes its folder, starts and ends its keeper, and runs commands of the local side."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from slurm_bundle.problems import GenError
from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.keeper import MARK
from slurm_bundle.rehearsal.standins.main import ON_SIDE, PARTS
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.records import escape, store_record

START = Path(__file__).parent / "standins" / "start.py"
FOLDERS = (
    "home",
    "cluster",
    "tmp",
    "counts",
    "sent",
    "slurm/jobs",
    "slurm/steps",
    "slurm/spool",
    "slurm/containers",
    "git/local",
    "git/login",
    "git/node",
)
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@")
# The mktemp of a Mac does not look at TMPDIR.
MAC_MKTEMP = '#!/bin/sh\ncase $* in -d) set -- -d "$TMPDIR/tmp.XXXXXXXX" ;; esac\nexec /usr/bin/mktemp "$@"\n'
# What may be on this machine, and is not to be reached from the local side.
ABSENT = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "salloc", "sftp")
LINUX_ONLY = ("timeout",)  # a Mac has none, and a login node is no Mac
FIRST_JOB = 4001  # the id of the first job: no small number, which might be taken for a count
WAIT = 20.0  # seconds of ours for the keeper to begin, and to end

Fault = Mapping[str, str]


class PracticeError(GenError):
    """The practice cluster cannot be set up."""


@dataclass
class Practice:
    """A practice cluster in `folder`, which is made and must be empty or not there.

    `site` is what Slurm is made of (standins/site.py), `hosts` the login shell by host (standins/ssh.py), `faults` what
    goes wrong (standins/faults.py), `factor` how many seconds pass there in one of ours. With `plays`, the texts that
    the bundle looks for, commands of the user are not run but played (standins/play.py).
    """

    folder: Path
    site: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    faults: Iterable[Fault] = ()
    factor: float = 60.0
    plays: Mapping[str, str] | None = None
    keeper: "subprocess.Popen[bytes] | None" = None
    interrupted: bool = False  # whether somebody has interrupted a command of the local side

    @property
    def place(self) -> Place:
        return Place(str(self.folder), "local")

    @property
    def cluster(self) -> Path:
        """The root of the cluster's file system."""
        return self.folder / "cluster"

    @property
    def home(self) -> Path:
        """The home directory of the local side."""
        return self.folder / "home"

    @property
    def home_there(self) -> Path:
        return Path(self.place.home_there())

    # Setting up

    def make(self) -> None:
        self.folder = self.folder.resolve()
        check_folder(self.folder)
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.home_there.mkdir(parents=True, exist_ok=True)
        store_record(f"{self.folder}/slurm/site", dict(self.site))
        store_record(f"{self.folder}/slurm/last_id", {"id": str(FIRST_JOB - 1)})
        store_record(f"{self.folder}/hosts", dict(self.hosts))
        store_record(f"{self.folder}/tools", {"path": ":".join(other_tools())})
        if self.plays is not None:
            store_record(f"{self.folder}/play", dict(self.plays))
        Clock(self.place).set(time.time(), self.factor)
        for side, names in ON_SIDE.items():
            self.make_bin(side, names)
        self.set_faults(self.faults)

    def set_faults(self, faults: Iterable[Fault]) -> None:
        """Have these things go wrong from now on; what was counted before is forgotten."""
        for old in (self.folder / "counts").iterdir():
            old.unlink()
        lines = ["\t".join(f"{name}={escape(value)}" for name, value in fault.items()) for fault in faults]
        (self.folder / "faults").write_text("".join(f"{line}\n" for line in lines))
        for fault in faults:
            if fault["on"] not in (*PARTS, "job", "origin"):  # a command that is else the real one
                self.wrap(fault["side"], fault["on"])

    def make_bin(self, side: str, names: Iterable[str]) -> None:
        (self.folder / "bin" / side).mkdir(parents=True)
        for name in names:
            if name not in LINUX_ONLY or sys.platform != "linux":
                self.wrap(side, name)
        if sys.platform == "darwin":
            self.write_command(side, "mktemp", MAC_MKTEMP)
        if side == "local":
            for name in ABSENT:
                self.write_command(side, name, f'#!/bin/sh\necho "{name}: command not found" >&2\nexit 127\n')
        elif not self.has_tmux():
            self.wrap(side, "tmux")
        if side == "node" and self.plays is not None:
            for shell in ("bash", "python3"):
                self.write_command(side, shell, self.player(shell))

    def has_tmux(self) -> bool:
        """Whether the real tmux will do: its server is found again only on Linux, and sockets have short names."""
        socket = f"{self.place.tmp}/tmux-{os.getuid()}/default"
        return sys.platform == "linux" and shutil.which("tmux") is not None and len(socket) < 100

    def wrap(self, side: str, name: str) -> None:
        self.write_command(side, name, f'#!/bin/sh\nexec {self.starter(side)} {name} "$@"\n')

    def starter(self, side: str) -> str:
        cache = f"pycache_prefix={self.folder}/pycache"
        return f"{quote(sys.executable)} -ISE -X {cache} {quote(str(START))} {self.folder} {side}"

    def player(self, name: str) -> str:
        """A bash or python3 that runs everything but the user's own commands."""
        real = shutil.which(name) or f"/usr/bin/{name}"
        kinds = ("build", "*/build_command.sh | scripts/build_wheel.py"), ("job", "*/command.sh")
        cases = "".join(f'    {names}) exec {self.starter("node")} play {kind} "$@" ;;\n' for kind, names in kinds)
        return f'#!/bin/sh\ncase ${{1-}} in\n{cases}esac\nexec {quote(real)} "$@"\n'

    def write_command(self, side: str, name: str, script: str) -> None:
        path = self.folder / "bin" / side / name
        path.write_text(script)
        path.chmod(0o755)

    # Its life

    def start(self) -> None:
        """Start the keeper, and wait until it says that it is there."""
        words = [sys.executable, "-ISE", str(START), str(self.folder), "node", "keeper"]
        with (self.folder / "keeper.log").open("wb") as log:
            self.keeper = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.local_environment(),
                start_new_session=True,
            )
        if self.listen(lambda line: None) != "ready":
            raise PracticeError(
                f"the practice cluster did not start: {(self.folder / 'keeper.log').read_text().strip()}"
            )

    def stop(self) -> None:
        """End every process of the practice cluster."""
        if self.keeper is None:
            return
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.close()
        try:
            self.keeper.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.keeper.kill()
            self.keeper.wait()
        self.keeper.stdout.close()
        self.keeper = None

    def __enter__(self) -> "Practice":
        self.make()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Commands

    def local_environment(self) -> dict[str, str]:
        """The environment of the local side: the stand-ins first, a home of its own, and git kept inside."""
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "LC_CTYPE", "TERM")}
        return {
            **kept,
            **git_environment(self.folder, "local"),
            "PATH": f"{self.folder}/bin/local:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "USER": self.home_there.name,
            "LOGNAME": self.home_there.name,
            "TMPDIR": str(self.folder / "tmp"),
            "TMUX_TMPDIR": str(self.folder / "tmp"),
        }

    def run_local(self, words: list[str], on_line: Callable[[str], None]) -> int:
        """Run a command of the local side below the keeper, and give its exit code; `on_line` is given what it says.

        On an interrupt the command gets one, too, and is waited for; on a second one, it is not.
        """
        self.tell("run\t" + "\t".join(words))
        try:
            answer = self.listen(on_line)
        except KeyboardInterrupt:
            self.interrupted = True
            self.tell("interrupt")
            answer = self.listen(on_line)
        word, _, code = answer.partition(" ")
        if word != "ended":
            raise self.broken()
        return int(code) if int(code) >= 0 else 128 - int(code)

    def broken(self) -> PracticeError:
        return PracticeError(f"the practice cluster has broken down; see {self.folder / 'keeper.log'}")

    def tell(self, text: str) -> None:
        assert self.keeper is not None
        assert self.keeper.stdin is not None
        try:
            self.keeper.stdin.write(f"{text}\n".encode())
            self.keeper.stdin.flush()
        except BrokenPipeError:
            raise self.broken() from None

    def listen(self, on_line: Callable[[str], None]) -> str:
        """The next word of the keeper itself; what its command says until then is handed on."""
        assert self.keeper is not None
        assert self.keeper.stdout is not None
        blank = False  # a blank line may be the one that the keeper puts before its own
        for data in self.keeper.stdout:
            line = data.decode("utf-8", "replace").rstrip("\n")
            if line.startswith(MARK):
                return line.removeprefix(MARK)
            if blank:
                on_line("")
            blank = not line
            if line:
                on_line(line)
        return ""

    def run_there(self, *words: str, side: str = "login", **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run a stand-in by its name, as somebody on that side would."""
        program = str(self.folder / "bin" / side / words[0])
        environment = {**self.local_environment(), "PATH": f"{self.folder}/bin/{side}:/usr/bin:/bin"}
        return subprocess.run(
            [program, *words[1:]],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,  # a stand-in that finds the keeper gone ends its whole process group
            **options,
        )


def check_folder(folder: Path) -> None:
    """Refuse a folder that is in use, or whose name would have to be quoted in the scripts of a bundle."""
    if set(str(folder)) - PLAIN:
        raise PracticeError(
            f"{folder}: a rehearsal needs a folder whose path has letters, digits and / . _ - + @ only; give another"
        )
    if folder.exists() and any(folder.iterdir()):
        raise PracticeError(f"{folder} is not empty; give a folder that is, or a new one")


def git_environment(folder: Path, side: str) -> dict[str, str]:
    """git reaches nothing but folders of this machine, and writes down what it does."""
    return {"GIT_ALLOW_PROTOCOL": "file", "GIT_TRACE2_EVENT": f"{folder}/git/{side}"}


def other_tools() -> list[str]:
    """The folders of git, bash, tar and python3, where a plain PATH does not have them."""
    folders = []
    for name in ("git", "bash", "tar", "python3"):
        if shutil.which(name, path="/usr/local/bin:/usr/bin:/bin") is None and (found := shutil.which(name)):
            folders.append(str(Path(found).parent))
    return list(dict.fromkeys(folders))


def quote(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
