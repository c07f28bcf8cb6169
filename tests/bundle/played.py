"""A bundle between stand-ins: ssh is a shell beside it, and Slurm's commands give prepared answers, one a call.

The scripts are those that gen makes, and run as they are. What they asked is recorded; waiting costs nothing, as
`sleep` only moves the clock on.
"""

import functools
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_bundle.bundle import write_bundle
from slurm_bundle.catalog import load_catalog
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.render import BundleFile, render_bundle
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import check_values

JOB = "4711"
COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun")
OWN_SCRIPT = "#!/bin/bash\nsrun hostname\n"

# Only what bash has built in: they are called often. @TOKEN@ in an answer stands for the token of the job, which the
# local side makes up.
STAND_IN = """#!/bin/bash
box={folder}/answers/{name}
read -r call <"$box/called"
read -r last <"$box/last"
call=$((call + 1))
echo "$call" >"$box/called"
printf -v words ' %q' "$@"
echo "{name}$words" >>{folder}/calls
[ "$call" -le "$last" ] || call=$last
if [ "$call" -eq 0 ]; then
    echo "{name}: no answer was prepared" | tee -a {folder}/unprepared >&2
    exit 99
fi
[ ! -e "$box/$call.hook" ] || . "$box/$call.hook"
out=$(<"$box/$call.out") err=$(<"$box/$call.err") token=x
[ ! -e {folder}/out/.run/job.token ] || read -r token <{folder}/out/.run/job.token
[ -z "$out" ] || echo "${{out//@TOKEN@/$token}}"
[ -z "$err" ] || echo "$err" >&2
read -r code <"$box/$call.code"
exit "$code"
"""

# The login shell starts with next to nothing in its environment, as sshd has it.
SSH = """#!/bin/bash
box={folder}/answers/ssh
read -r call <"$box/called"
read -r last <"$box/last"
call=$((call + 1))
echo "$call" >"$box/called"
printf -v words ' %q' "$@"
echo "ssh$words" >>{folder}/calls
[ "$call" -le "$last" ] || call=$last
mode=$(<"$box/$call.out")
log_in() {{
    cd {folder}/home && printf '%b' "$(<{folder}/banner)" &&
        env -i HOME={folder}/home USER=u LOGNAME=u PATH={folder}/there:/usr/bin:/bin "${{@: -2:1}}" "${{@: -1}}"
}}
break_off() {{
    echo "client_loop: send disconnect: Broken pipe" >&2
    exit 255
}}
case $mode in
    '') log_in "$@" ;;
    down) echo "ssh: connect to host login port 22: Connection refused" >&2; exit 255 ;;
    cut-before) cat >/dev/null; break_off ;;
    cut-upload) head -c "$(<"$box/$call.err")" | log_in "$@" >/dev/null; break_off ;;
    cut-answer) log_in "$@" >{folder}/whole; head -c "$(<"$box/$call.err")" {folder}/whole; break_off ;;
    cut-reply) log_in "$@" >/dev/null; break_off ;;
    goes-on) cat >{folder}/sent; log_in "$@" <{folder}/sent >{folder}/went-on 2>&1 & break_off ;;
    says-after) log_in "$@"; printf 'bye 12\nlogout\n' ;;
    *) log_in "$@"; exit "$mode" ;;
esac
"""

SLEEP = """#!/bin/bash
echo "$1" >>{folder}/slept
read -r clock <{folder}/clock
echo "$((clock + ${{1%.*}}))" >{folder}/clock
"""

DATE = """#!/bin/bash
[ "$*" = +%s ] || exec /bin/date "$@"
read -r clock <{folder}/clock
printf -v now '%(%s)T' -1
echo "$((now + clock))"
"""


@dataclass(frozen=True)
class Answer:
    """What a command gives on one call; `hook` is bash that runs before."""

    out: str = ""
    err: str = ""
    code: int = 0
    hook: str = ""


@dataclass(frozen=True)
class Queued:
    """A row of squeue."""

    state: str
    reason: str = "None"
    token: str = "t1"
    user: int = os.getuid()


@dataclass(frozen=True)
class Accounted:
    """A row of sacct, with rows of its steps; it was submitted `age` seconds before ours."""

    state: str
    code: str = "0:0"
    age: int = 0
    user: int = os.getuid()
    steps: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Controlled:
    """What scontrol shows of a job."""

    state: str
    code: str = "0:0"
    token: str = "t1"
    user: int = os.getuid()


Prepared = Answer | Queued | Accounted | Controlled | tuple[Accounted, ...]


@dataclass(frozen=True)
class Ran:
    code: int
    said: str


def fails(err: str, code: int = 1) -> Answer:
    return Answer(err=f"{err}\n", code=code)


def says(*lines: str, err: str = "") -> Answer:
    return Answer(out="".join(f"{line}\n" for line in lines), err=err)


NOTHING = Answer()
NO_SUCH_JOB = fails("slurm_load_jobs error: Invalid job id specified")
SILENT = fails("slurm_load_jobs error: Socket timed out on send/recv operation")
NO_CONTROLLER = fails("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
NO_ACCOUNTS = fails("Slurm accounting storage is disabled")


@functools.cache
def render(spec: str) -> tuple[Plan, tuple[BundleFile, ...]]:
    values = json.loads(spec)
    here = Surroundings(
        user="me",
        repo_root=Path("/home/me/engine"),
        origin_url="https://git.example.org/me/engine.git",
        batch_script=OWN_SCRIPT if "script_path" in values else None,
    )
    plan = resolve_plan(check_values(values), load_catalog(None, explicit=False), here)
    return plan, render_bundle(plan)


class Played:
    """A bundle in `out`, what is on the cluster below `home`, and the answers of Slurm's commands and of ssh."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.out = folder / "out"
        for name in ("home", "here", "there"):
            (folder / name).mkdir()
        (folder / "clock").write_text("0\n")
        (folder / "banner").write_text("")
        for name in (*COMMANDS, "ssh"):
            self.put(folder / "there" / name, STAND_IN, name=name)
            self.play(name)
        (folder / "there" / "ssh").unlink()
        self.put(folder / "here" / "ssh", SSH)
        self.play("ssh", NOTHING)
        for side in ("here", "there"):
            self.put(folder / side / "sleep", SLEEP)
        self.put(folder / "here" / "date", DATE)
        if "GEN_TEST_BASH" in os.environ:  # another bash for the local side, such as a 3.2
            (folder / "here" / "bash").symlink_to(os.environ["GEN_TEST_BASH"])

    def put(self, path: Path, text: str, **names: str) -> None:
        path.write_text(text.format(folder=self.folder, **names))
        path.chmod(0o755)

    def bundle(self, **changes: Any) -> None:
        """Make the bundle; the spec is that of a single process, or of your own script where script_path is given."""
        spec = {
            "ssh_host": "login",
            "mfa_style": False,
            "remote_cwd": str(self.home / "a b"),
            "account": "acct",
            "partition": "main",
            "model_name": "m",
            "time_limit": "10",
            "poll_seconds": 10,
            "build_project": False,
            **({} if "script_path" in changes else {"command": "true"}),
            **changes,
        }
        plan, files = render(json.dumps(spec))
        write_bundle(files, self.out)
        self.work, self.scripts = Path(plan["remote_work_dir"]), Path(plan["scripts_dir"])
        (self.scripts / "log").mkdir(parents=True)
        (self.scripts / "submitted").mkdir()
        self.keep(bundle=plan["bundle_id"], snapshot="0" * 40)

    def set(self, **values: int) -> None:
        """Change a value of config.sh, as a person would."""
        config = self.out / "config.sh"
        lines = config.read_text().splitlines()
        for name, value in values.items():
            number = next(n for n, line in enumerate(lines) if line.startswith(f"readonly {name}="))
            lines[number] = f"readonly {name}={value}"
        config.write_text("\n".join(lines) + "\n")

    def keep(self, **values: str) -> None:
        state = self.out / ".run"
        state.mkdir(exist_ok=True)
        for name, value in values.items():
            (state / name.replace("_", ".", 1)).write_text(f"{value}\n")

    def kept(self, name: str) -> str:
        path = self.out / ".run" / name
        return path.read_text().strip() if path.exists() else ""

    def submitted(self, *, kind: str = "job", token: str = "t1", cluster: str = "", job: str = JOB) -> None:
        """Leave things as submit.sh leaves them."""
        path = self.path(token)
        path.write_text("#!/bin/bash\n")
        since = str(int(path.stat().st_mtime))
        logs = {"out": str(self.work / f"slurm-{job}.out"), "err": str(self.work / f"slurm-{job}.err")}
        values = {"token": token, "cluster": cluster, "since": since, "id": job, **logs}
        self.keep(**{f"{kind}_{name}": value for name, value in values.items()})
        self.write_log("", job=job)

    def play(self, name: str, *prepared: Prepared) -> None:
        """Prepare the answers of a command, one a call; the last one repeats. Without any, it must not be called."""
        answers = [self.spell(each) for each in prepared]
        box = self.folder / "answers" / name
        box.mkdir(parents=True, exist_ok=True)
        (box / "called").write_text("0\n")
        (box / "last").write_text(f"{len(answers)}\n")
        for number, answer in enumerate(answers, 1):
            (box / f"{number}.out").write_text(answer.out)
            (box / f"{number}.err").write_text(answer.err)
            (box / f"{number}.code").write_text(f"{answer.code}\n")
            if answer.hook:
                (box / f"{number}.hook").write_text(answer.hook)

    def start(self, step: str, *arguments: str) -> "subprocess.Popen[str]":
        env = {"PATH": f"{self.folder}/here:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}
        return subprocess.Popen(
            [self.out / step, *arguments],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, step: str, *arguments: str) -> Ran:
        running = self.start(step, *arguments)
        _, said = running.communicate(timeout=120)
        unprepared = self.folder / "unprepared"
        assert not unprepared.exists(), f"{unprepared.read_text()}{said}"
        return Ran(running.returncode, said)

    def calls(self, name: str) -> list[str]:
        """The calls of a command so far, with their arguments."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split()[0] == name]

    def slept(self) -> list[int]:
        path = self.folder / "slept"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def wait_for(self, path: Path, *, there: bool = True) -> None:
        """Wait for what goes on in the background, after `goes-on`."""
        end = time.monotonic() + 60
        while path.exists() != there:
            assert time.monotonic() < end, f"waited in vain for {path}"
            time.sleep(0.05)

    def spell(self, prepared: Prepared) -> Answer:
        """What Slurm says of a job, in the columns that the scripts ask for."""
        match prepared:
            case Queued(state, reason, token, user):
                return says(f"{state}|{reason}|2026-01-01T00:00:00|n1|{user}|{self.work}|{self.path(token)}")
            case Controlled(state, code, token, user):
                return says(
                    f"JobId={JOB} JobName=x UserId=u({user}) GroupId=g(1) JobState={state} Reason=None Requeue=0 "
                    f"ExitCode={code} RunTime=00:01:00 ReqNodeList=(null) ExcNodeList=(null) NodeList=n1 "
                    f"Command={self.path(token)} WorkDir={self.work} StdErr=/x StdIn=/dev/null StdOut=/y Power="
                )
            case Accounted():
                return self.spell((prepared,))
            case tuple():
                return says(*(row for accounted in prepared for row in self.rows(accounted)))
        return prepared

    def rows(self, accounted: Accounted) -> Iterator[str]:
        since = int(self.kept("job.since") or self.kept("build.since"))
        submit = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since - accounted.age))
        yield f"{JOB}|{accounted.state}|{accounted.code}|00:01:00|n1|{submit}|{accounted.user}"
        for number, (state, code) in enumerate(accounted.steps):
            yield f"{JOB}.{number}|{state}|{code}|00:00:30|n1|{submit}|"

    def path(self, token: str) -> Path:
        return self.scripts / "submitted" / f"{token}.slurm"

    def write_exit(self, text: str, *, kind: str = "job") -> None:
        (self.scripts / "log" / f"{kind}.{JOB}.exit").write_text(f"{text}\n")

    def write_log(self, text: str, *, job: str = JOB) -> None:
        (self.work / f"slurm-{job}.out").write_text(text)
