"""Runs the scripts of a bundle, each with a PATH of its own from its header, and notes what each calls and changes.

A folder of small scripts stands for each PATH: each notes its name and becomes the program. The ways from one script to
the next are in them, too: bash takes the PATH of the script that it is given, ssh that of the login script in the
stream (watch_ssh.py), sbatch and srun that of what they start. Jobs are held until they are let run, so that nothing
that a node writes is taken for the work of somebody else.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster import watch_ssh
from tests.cluster.conftest import World, wait_for
from tests.cluster.watch_ssh import Photograph, changes, photograph
from tests.script_headers import Header, list_libraries, list_scripts, read_header

PATH_THERE = "/usr/local/bin:/usr/bin:/bin"

# What the texts of the user may call; and programs that the test cluster has no use for.
OF_THE_USER = {"command.sh": {"cat"}, "build_wheel.py": {"cat"}}
STAND_INS = {"sudo": 'shift; exec "$@"', "nvidia-smi": "exit 0"}

# Every job is held; its script gets a PATH of its own, and a TMPDIR.
SBATCH = """
TMPDIR={scratch}
for script do case $script in *.slurm) break ;; esac; done
if /bin/grep -q /build.sh "$script"; then PATH={build}; else PATH={job}; fi
exec {real} --hold "$@"
"""

# Of the words of srun, the first that is no option gets a PATH before it.
SRUN = """
in_command=''
for word do
    shift
    case $in_command$word in
        -* | yes*) ;;
        /bin/sh) echo '{path} /bin/sh' >>{calls}; set -- "$@" /usr/bin/env PATH={task}; in_command=yes ;;
        *) set -- "$@" /usr/bin/env PATH={own}; in_command=yes ;;
    esac
    set -- "$@" "$word"
done
exec {real} "$@"
"""


class Watched:
    """A world that is watched: what its headers name, what was seen of that, and what was seen and is in no header."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tools = world.origin.parent / "tools"
        self.headers: dict[str, Header] = {}
        self.named: set[tuple[str, str]] = set()
        self.named_places: set[tuple[str, str]] = set()
        self.written: set[tuple[str, str]] = set()
        self.lies: list[str] = []
        self.sessions_seen = 0
        self.jobs: list[str] = []
        self.scratch = [str(world.folder / "tmp"), str(self.tools / "login-tmp"), str(self.tools / "job-tmp")]
        for folder in (str(self.tools), *self.scratch):
            Path(folder).mkdir()
            Path(folder).chmod(0o777)
        for notes in ("calls", "missing", "sessions"):
            (self.tools / notes).touch()
            (self.tools / notes).chmod(0o666)

    @property
    def called(self) -> set[tuple[str, str]]:
        lines = (self.tools / "calls").read_text().splitlines()
        return {(path, name) for path, name in map(str.split, lines) if path not in OF_THE_USER}

    def missing(self) -> list[str]:
        """What some bash did not find, with the folder of the script that it ran."""
        return sorted(set((self.tools / "missing").read_text().splitlines()))

    # ---- a PATH for each script

    def make_bundle(self, **changes: Any) -> None:
        """Make the bundle of the spec with these changes, and a folder of tools for each script that runs."""
        out = self.world.bundle(**changes)
        files = (path for path in out.rglob("*") if path.suffix in (".sh", ".slurm"))
        bundle = {str(path.relative_to(out)): path.read_text() for path in files}
        run = [path for path in list_scripts(bundle) if path not in list_libraries(bundle)]
        self.headers = {path: read_header(bundle[path]) for path in run}
        self.login_scripts = {path: bundle[path] for path in run if path.startswith("login/")}
        for path, header in self.headers.items():
            self.make_folder(path, {*header.calls, *header.expects})
            self.named |= {(path, name) for name in header.calls}
            folders = {place for place in header.places if place != "the queue" and not place.startswith("what ")}
            self.named_places |= {(path, place) for place in folders}
        for path, names in OF_THE_USER.items():
            self.make_folder(path, names)
        self.write_watch()

    def folder(self, path: str) -> str:
        return str(self.tools / path.replace("/", "+"))

    def make_folder(self, path: str, names: set[str]) -> None:
        """The tools of a script; bash is always there, since the script itself runs in it."""
        folder = Path(self.folder(path))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in {name for name in names if "/" not in name} | {"bash"}:
            fault = self.fault(path, name)
            lines = ["#!/bin/sh", f"if [ -e {fault} ]; then /bin/mv {fault} {fault}.done; . {fault}.done; fi"]
            lines += [f"echo '{path} {name}' >>{self.tools}/calls"] if name in names else []
            (folder / name).write_text("\n".join([*lines, self.become(path, name), ""]))
            (folder / name).chmod(0o755)

    def become(self, path: str, name: str) -> str:
        """The lines by which a tool becomes the program whose name it has."""
        if name in STAND_INS:
            return STAND_INS[name]
        here = self.is_here(path)
        real = shutil.which(name, path=self.world.env["PATH"] if here else PATH_THERE)
        assert real, f"{path} calls {name}, which is not installed here"
        match name:
            case "ssh" if here:
                return f'exec {sys.executable} {watch_ssh.__file__} {self.tools}/watch.json "$@"'
            case "bash" | "python3":
                scripts = (*self.headers, *OF_THE_USER)
                ways = "".join(f"*/{script}) PATH={self.folder(script)} ;;\n" for script in scripts)
                return f'case ${{1-}} in\n{ways}esac\nexec /usr/bin/env {self.note_missing} {real} "$@"'
            case "sbatch":
                job = self.folder("recipes/job.slurm") if "recipes/job.slurm" in self.headers else PATH_THERE
                return SBATCH.format(real=real, scratch=self.scratch[2], build=self.folder("build.slurm"), job=job)
            case "srun":
                own, task = self.folder(path), self.folder("task.sh")
                return SRUN.format(path=path, calls=self.tools / "calls", own=own, task=task, real=real)
        return f'exec {real} "$@"'

    def is_here(self, path: str) -> bool:
        return path in self.headers and self.headers[path].fact("Runs on").startswith("your machine")

    def fault(self, path: str, name: str) -> Path:
        """A file with what a tool shall do first, once, the next time that a script calls it."""
        return self.tools / f"{Path(self.folder(path)).name}.{name}.fault"

    @property
    def note_missing(self) -> str:
        """A function for the environment of each bash: it notes what is not on the PATH, even if nobody complains."""
        body = f'() {{ printf "%s %s\\n" "${{PATH##*/}}" "$1" >>{self.tools}/missing; return 127; }}'
        return shlex.quote(f"BASH_FUNC_command_not_found_handle%%={body}")

    def write_watch(self) -> None:
        """What watch_ssh.py has to know."""
        home = self.world.cluster["GEN_USER_HOME"]
        self.here = {"roots": [str(self.world.folder)], "left_out": [f"{self.world.folder}/ssh-calls"]}
        self.there = {"roots": [str(self.world.root), str(self.world.origin), home, *self.scratch[1:]], "left_out": []}
        environments = {
            path: [f"PATH={self.folder(path)}", f"TMPDIR={self.scratch[1]}", *shlex.split(self.note_missing)]
            for path in self.login_scripts
        }
        watch = {
            "ssh": f"{self.world.folder}/bin/ssh",
            "scripts": self.login_scripts,
            "environments": environments,
            "there": {**self.there, "scratch": self.scratch},
            "busy": f"{self.tools}/busy",
            "sessions": f"{self.tools}/sessions",
        }
        (self.tools / "watch.json").write_text(json.dumps(watch))

    # ---- runs

    def environment(self, path: str) -> dict[str, str]:
        return {"PATH": self.folder(path), "TMPDIR": self.scratch[0]}

    def photograph(self, *sides: dict[str, list[str]]) -> Photograph:
        photographs = [photograph(**side, scratch=self.scratch) for side in sides]
        return {path: what for taken in photographs for path, what in taken.items()}

    def run(self, step: str, *arguments: str, code: int = 0) -> None:
        """Run a step, and note what it has changed, here and there."""
        with self.running(step, *arguments, code=code):
            pass

    @contextmanager
    def running(
        self, step: str, *arguments: str, code: int = 0, env: Mapping[str, str] | None = None
    ) -> Iterator[Callable[[], None]]:
        """Run a step, and meanwhile do something else; what it gives notes what has changed up to then."""

        def look() -> None:
            self.note(step, changes(before, self.photograph(*sides)))

        sides = (self.here,) if (self.tools / "busy").exists() else (self.here, self.there)
        before = self.photograph(*sides)
        running = self.world.start(step, *arguments, env={**self.environment(step), **(env or {})})
        try:
            yield look
            _, said = running.communicate(timeout=100)
        except BaseException:
            os.killpg(running.pid, signal.SIGTERM)
            print(f"{step} did not end; not found: {self.missing()}")
            raise
        assert running.returncode == code, (
            f"{step} ended with {running.returncode}; not found: {self.missing()}; {said}"
        )
        look()
        self.note_sessions()

    def note_sessions(self) -> None:
        sessions = (self.tools / "sessions").read_text().splitlines()
        for session in map(json.loads, sessions[self.sessions_seen :]):
            if not session["busy"]:
                self.note(session["script"], session["changed"])
        self.sessions_seen = len(sessions)

    @contextmanager
    def line_down(self) -> Iterator[None]:
        (self.world.folder / "line-down").touch()
        yield
        (self.world.folder / "line-down").unlink()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While two write there at the same time: what they change there is not told apart, and not noted."""
        (self.tools / "busy").touch()
        yield
        (self.tools / "busy").unlink()

    def wait_for_job(self, kind: str) -> str:
        """The id of a build or job, when a step has one that was not seen before."""
        wait_for(lambda: self.world.kept(f"{kind}.id") not in ("", *self.jobs))
        self.jobs.append(self.world.kept(f"{kind}.id"))
        return self.jobs[-1]

    def wait_for_look(self) -> None:
        """Wait until a step has looked once more at its job."""
        looks = self.looks()
        wait_for(lambda: self.looks() > looks)

    def looks(self) -> int:
        return (self.tools / "sessions").read_text().count("login/poll.sh")

    def let_run(self, kind: str, *, watching: bool, until: str = "COMPLETED") -> None:
        """Let a job run that is held, once a step that is `watching` has seen it; note what it changes until then."""
        script, inner = ("build.slurm", "build.sh") if kind == "build" else ("recipes/job.slurm", "task.sh")
        job = self.wait_for_job(kind)
        if watching:
            self.wait_for_look()
        show = ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")
        with self.busy():
            before = self.photograph(self.there)
            self.world.slurm("scontrol", "release", job)
            wait_for(lambda: self.world.slurm(*show) in (until, "FAILED"))
            if script in self.headers:
                self.note(script, changes(before, self.photograph(self.there)), inner=inner)

    def explain(self) -> None:
        """Have every script that runs explain itself."""
        for path in self.headers:
            done = subprocess.run(
                [f"{self.folder(path)}/bash", self.world.out / path, "--help"],
                env=self.environment(path),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, (path, done.stderr)
            assert "Runs on:" in done.stdout, path

    # ---- places

    def note(self, path: str, changed: Iterable[str], *, inner: str = "") -> None:
        """Compare what a script has changed, and another one that runs inside of it, with what its header names."""
        locations = self.locations()
        places = self.places_of(path) & set(locations)
        for item in changed:
            holding = {place for place in places if any(lies_in(item, location) for location in locations[place])}
            self.written |= {(script, place) for place in holding for script in (path, inner)}
            # Only a login script is asked about its scratch folder, which others may see; an older bash here keeps
            # the text of a `<<<` in a file for a moment.
            passing = item == self.scratch[0] or (
                lies_in(item, f"{self.scratch[1]}/") and path not in self.login_scripts
            )
            if not holding and not passing:
                self.lies.append(f"{path} has changed {item}, which its Writes: does not name")

    def places_of(self, path: str) -> set[str]:
        """The places in a header, with those of the scripts to which it refers."""
        places = set(self.headers[path].places)
        for place in [place for place in places if place.startswith("what ")]:
            other = place.split()[1]
            if other == "each":
                steps = [step for step in self.headers if self.is_here(step) and step != path]
                places = places.union(*(self.places_of(step) for step in steps))
            elif other in self.headers:
                places |= self.places_of(other)
        return places

    def locations(self) -> dict[str, list[str]]:
        """Where the places of headers are in this world, now; a path that ends in / is all that lies below it."""
        world = self.world
        config = (world.out / "config.sh").read_text()
        values = dict(re.findall(r"^readonly ([A-Z_]+)='(.*)'$", config, re.MULTILINE))
        scripts = values["SCRIPTS_DIR"]
        below = {
            ".run/": [str(world.state)],
            "a scratch folder": self.scratch,
            "a branch on origin": [str(world.origin)],
            "REMOTE_REPO": [values["REMOTE_REPO"]],
            "REPO_DIR": [values["REMOTE_REPO"]],
            "REMOTE_WORK": [values["REMOTE_WORK"]],
            "SCRIPTS_DIR": [scripts],
            "SCRIPTS_DIR/log": [f"{scripts}/log"],
            "SCRIPTS_DIR/submitted": [f"{scripts}/submitted"],
            "MARKS": [f"{scripts}/log/job.{world.kept('job.id')}"],
        }
        result = f"{values['REMOTE_WORK']}/result"
        alone = {
            "the logs": [world.kept("job.out"), world.kept("job.err")],
            "the folder ~/.ssh": [f"{world.folder}/.ssh"],
            **{f"the folder {name}": [values[name]] for name in ("REMOTE_CWD", "USER_ROOT", "REMOTE_WORK")},
            "what command.sh writes": [result],
            "what your batch script writes": [result],
        }
        return {**{place: [f"{path}/" for path in paths] for place, paths in below.items()}, **alone}


def lies_in(item: str, location: str) -> bool:
    return f"{item}/".startswith(location) if location.endswith("/") else item == location
