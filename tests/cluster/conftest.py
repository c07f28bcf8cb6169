"""A world for each test: a dirty repository, an origin, a folder on the cluster, and gen as it is installed."""

import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.practice import make_practice_cluster
from tests.project import git, make_dirty, make_project

ROOT = Path(__file__).parents[2]
WORLDS = itertools.count()


def choose_cluster() -> None:
    """Tests that run side by side have a cluster each: the first worker the usual one, the others further ones."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if worker != "0" and "GEN_CLUSTER_OF" not in os.environ:
        os.environ["GEN_CLUSTER_OF"] = worker
        os.environ["GEN_CLUSTER_DIR"] = f"{os.environ.get('GEN_CLUSTER_DIR', '/tmp/gen-cluster')}-{worker}"
        os.environ["GEN_CLUSTER_PREFIX"] = f"{os.environ.get('GEN_CLUSTER_PREFIX', 'gen')}{worker}"
        os.environ["GEN_CLUSTER_PORT"] = str(int(os.environ.get("GEN_CLUSTER_PORT", "17000")) + 100 * int(worker))


def read_environment() -> dict[str, str]:
    """What `scripts/cluster env` exports; the cluster is started where it does not run."""
    choose_cluster()
    cluster = str(ROOT / "scripts" / "cluster")
    started = subprocess.run([cluster, "up"], capture_output=True, text=True, check=False)
    assert started.returncode == 0, f"scripts/cluster up: {started.stdout}{started.stderr}"
    shown = subprocess.run(
        ["bash", "-c", f'eval "$({shlex.quote(cluster)} env)"; env -0'], capture_output=True, text=True, check=True
    )
    pairs = (line.partition("=") for line in shown.stdout.split("\0"))
    return {"GEN_TELL_IMAGE": "cat /etc/image-release"} | {
        name: value for name, _, value in pairs if name.startswith("GEN_") or name == "SLURM_CONF"
    }


@pytest.fixture(scope="session")
def cluster() -> dict[str, str]:
    if os.geteuid() != 0:
        pytest.fail("the test cluster needs root: run scripts/test as root, or deselect these with -m 'not cluster'")
    return read_environment()


@pytest.fixture(scope="session")
def practice_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    yield from make_practice_cluster(tmp_path_factory.mktemp("practice"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test marked `both_worlds` runs on the real cluster and on the practice cluster; `real_only` takes that back."""
    if "world" in metafunc.fixturenames and metafunc.definition.get_closest_marker("both_worlds"):
        worlds = [pytest.param("real", marks=pytest.mark.cluster)]
        if not metafunc.definition.get_closest_marker("real_only"):
            worlds.append(pytest.param("practice"))
        metafunc.parametrize("world", worlds, indirect=True)


@pytest.fixture(scope="session")
def template_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "engine"
    folder.mkdir()
    make_project(folder)
    return folder


def wait_for(what: Callable[[], object], *, seconds: int = 60) -> None:
    """Wait until `what` gives something true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


@dataclass
class Ran:
    """A step that has ended: exit code, and what it said on stderr and stdout."""

    code: int
    said: str
    out: str


@dataclass
class World:
    """What a test has: `repo` here, `origin` (bare), `root` on the cluster, `out` for the bundle."""

    cluster: Mapping[str, str]
    folder: Path
    repo: Path
    origin: Path
    root: Path
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def state(self) -> Path:
        return self.out / ".run"

    @property
    def env(self) -> dict[str, str]:
        """The environment of somebody at a workstation: the client's ssh first, and nothing of this test run."""
        # Other tools for the local side, such as those of a BSD.
        tools = f"{os.environ['GEN_TEST_TOOLS']}:" if "GEN_TEST_TOOLS" in os.environ else ""
        return {"PATH": f"{self.folder}/bin:{tools}/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}

    @property
    def repo_there(self) -> Path:
        return self.root / "engine"

    def gen(self, *arguments: str) -> Ran:
        program = str(Path(sys.executable).parent / "gen")
        catalog = self.folder / "clusters.toml"
        if not catalog.exists():
            catalog.write_text("[clusters.testbed]\nmin_poll_seconds = 1\n")
        done = subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            env={**self.env, "GEN_CATALOG": str(catalog)},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stderr, done.stdout)

    def bundle(self, **changes: Any) -> Path:
        """Write the spec with these changes (None takes a field out), and make the bundle of it."""
        spec = {name: value for name, value in {**self.spec, **changes}.items() if value is not None}
        (self.folder / "job_spec.json").write_text(json.dumps(spec, indent=2))
        made = self.gen("bundle", "job_spec.json", "-o", "out")
        assert made.code == 0, made.said
        return self.out

    def start(self, step: str, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a step as a terminal would: in a process group of its own, with an interrupt that is not ignored."""
        return subprocess.Popen(
            [str(self.out / step), *arguments],
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def start_with_bash(self, script: Path, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["bash", str(script), *arguments],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, step: str, *arguments: str, env: Mapping[str, str] | None = None, limit: int = 240) -> Ran:
        running = self.start(step, *arguments, env=env)
        out, said = running.communicate(timeout=limit)
        return Ran(running.returncode, said, out)

    def run_here(self, *command: str) -> Ran:
        """Run another command as the user of the bundle would."""
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        return Ran(done.returncode, done.stderr, done.stdout)

    def kept(self, name: str) -> str:
        path = self.state / name
        return path.read_text().strip() if path.exists() else ""

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.state / "report.json").read_text())
        return report

    def slurm(self, *command: str) -> str:
        done = subprocess.run(command, env={**os.environ, **self.cluster}, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def sessions(self) -> list[str]:
        """The calls of ssh so far that opened a session with the login node."""
        calls = (self.folder / "ssh-calls").read_text().splitlines()
        return [call for call in calls if f" {self.cluster['GEN_SSH_HOST']} " in f"{call} "]

    def jobs_submitted(self) -> list[str]:
        """The ids of all jobs that were submitted from this world's folder, by accounting and by the queue."""
        columns = ("--noheader", "--parsable2", "--starttime=now-1day", "--format=JobID,WorkDir")
        old = self.slurm("sacct", "--allusers", "--allocations", *columns)
        new = self.slurm("squeue", "--noheader", "--states=all", "--format=%i|%Z")
        lines = {*old.splitlines(), *new.splitlines()}
        return sorted({line.split("|")[0] for line in lines if f"{self.root}/" in line}, key=int)

    def accounted(self, job: str, columns: str) -> str:
        """What accounting says of a job, once it has all of it: for a while it calls the job `allocation`."""

        def ask() -> str:
            return self.slurm("sacct", "-X", "-n", "-P", f"--jobs={job}", f"--format={columns}")

        name = ("sacct", "-X", "-n", "-P", f"--jobs={job}", "--format=JobName,End")
        wait_for(lambda: not {"allocation", "Unknown", ""} & set(self.slurm(*name).split("|")))
        return ask()

    def branches_on_origin(self) -> list[str]:
        return git(self.origin, "-c", "safe.directory=*", "for-each-ref", "--format=%(refname:short)").split()


@pytest.fixture
def world(template_project: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    practice = getattr(request, "param", "real") == "practice"
    cluster: dict[str, str] = request.getfixturevalue("practice_cluster" if practice else "cluster")
    name = f"{request.node.name.split('[')[0][:40]}-{os.getpid()}-{next(WORLDS)}"
    with make_world(cluster, template_project, tmp_path, name) as world:
        yield world


@contextmanager
def make_world(cluster: dict[str, str], template_project: Path, tmp_path: Path, name: str) -> Iterator[World]:
    """A world below `tmp_path` here, and below folders called `name` on the cluster; its jobs end with it."""
    repo = tmp_path / "engine"
    shutil.copytree(template_project, repo, symlinks=True)
    origin = Path(cluster["GEN_ORIGIN_DIR"]) / name / "engine.git"
    origin.parent.mkdir()
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repo), str(origin)], check=True)
    root = Path(cluster["GEN_USER_ROOT"]) / name
    root.mkdir()
    user = cluster["GEN_USER"]
    subprocess.run(["chown", "-R", f"{user}:", str(origin.parent), str(root)], check=True)
    git(repo, "remote", "add", "origin", f"{cluster['GEN_ORIGIN_URL']}/{name}/engine.git")
    make_dirty(repo)
    (tmp_path / "bin").mkdir()
    for name in ("ssh", "scp"):
        real = f"{cluster['GEN_CLIENT_BIN']}/{name}"
        wrapper = tmp_path / "bin" / name
        wrapper.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>"{tmp_path}/ssh-calls"\n'
            f'if [ -e "{tmp_path}/line-down" ]; then echo "connect: Network is unreachable" >&2; exit 255; fi\n'
            f'exec {real} "$@"\n'
        )
        wrapper.chmod(0o755)
    for other in Path(cluster["GEN_CLIENT_BIN"]).iterdir():
        if other.name not in ("ssh", "scp"):
            (tmp_path / "bin" / other.name).symlink_to(other)
    if "GEN_TEST_BASH" in os.environ:  # another bash for the local side, such as a 3.2
        (tmp_path / "bin" / "bash").symlink_to(os.environ["GEN_TEST_BASH"])
    world = World(cluster, tmp_path, repo, origin, root)
    world.spec = {
        "ssh_host": cluster["GEN_SSH_HOST"],
        "slurm_cluster": "testbed",
        "slurm_user": user,
        "mfa_style": False,
        "remote_cwd": str(root),
        "default_user_root_dir": str(root),
        "account": cluster["GEN_ACCOUNT"],
        "partition": cluster["GEN_PARTITION"],
        "model_name": "engine",
        "time_limit": "00:10:00",
        "poll_seconds": 1,
        "monitor_timeout": "5m",
        "repo_root": str(repo),
        "command": 'python3 tools/fingerprint.py "$WORK_DIR/tree.json" && echo all passed',
        "build_project": False,
    }
    yield world
    for job in world.jobs_submitted():
        world.slurm("scancel", job)
