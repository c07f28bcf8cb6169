"""What the headers of the scripts name, and what the scripts do when each has a PATH of no more than its header names.

tests/bundle/test_script_headers.py compares headers with the text below them, for many more bundles.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import make_world
from tests.cluster.watched import Watched

pytestmark = [pytest.mark.cluster, pytest.mark.req("R63")]

BUILD_WHEEL = """import os, subprocess
os.makedirs("cpp/build")
subprocess.run("cat cpp/Makefile >cpp/build/engine", shell=True, check=True)
print("Successfully built")
"""

# What Slurm's commands do where it stumbles.
UNREACHABLE = "echo 'error: Unable to contact slurm controller (connect failure)' >&2; exit 1\n"
ANSWER_LOST = '/usr/bin/sbatch --hold "$@" >/dev/null; echo "sbatch: error: Socket timed out" >&2; exit 1\n'
TOO_OLD = "echo 'squeue: unrecognized option' >&2; exit 1\n"
REFUSED = "echo 'sbatch: error: invalid partition specified: nowhere' >&2; exit 1\n"
PATH_HIDDEN = """/usr/bin/squeue "$@" | /bin/sed 's#|[^|]*$#|elsewhere#'; exit 0\n"""


@pytest.fixture(scope="module")
def watched(
    cluster: dict[str, str], template_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    """A world in which every script has run, with all that may go wrong for which it has a program."""
    folder = tmp_path_factory.mktemp("headers")
    with make_world(cluster, template_project, folder, f"{folder.name}-{os.getpid()}") as world:
        watched = Watched(world)
        world.spec |= {
            "remote_cwd": f"{world.root}/cwd",
            "create_remote_cwd": True,
            "default_user_root_dir": f"{world.root}/user",
            "remote_repo_path": f"{world.root}/code/engine",
            "remote_work_dir": f"{world.root}/work",
        }
        build_and_run_in_a_container(watched)
        hang_in_a_batch_script_while_slurm_stumbles(watched)
        watched.make_bundle(mfa_style=True)
        watched.run("preflight.sh", code=4)
        yield watched


def build_and_run_in_a_container(watched: Watched) -> None:
    world = watched.world
    (world.repo / "scripts" / "build_wheel.py").write_text(BUILD_WHEEL)
    (world.folder / "extra.txt").write_text("data\n")
    watched.make_bundle(
        container_image="registry.example.org/tensorrt-llm/devel:1.0",
        mounts=[f"{watched.tools}:{watched.tools}"],
        recipe="distributed",
        node_count=2,
        required_devices_per_node=2,
        gpu_clocks="1593,1980",
        build_project=True,
        extra_files=[str(world.folder / "extra.txt")],
        pass_env=["TOKEN"],
        remote_init="export FROM_INIT=yes",
        command='[ "$RANK" != 3 ] || cat /etc/image-release >"$WORK_DIR/result"',
    )
    watched.explain()
    watched.run("preflight.sh")
    sync_in_spite_of_everything(watched)
    watched.fault("login/poll.sh", "squeue").write_text(PATH_HIDDEN)
    with watched.running("submit_build.sh", code=6) as look:
        watched.wait_for_job("build")
        look()
        with watched.busy():
            watched.run("cleanup.sh")  # the build is held, and has to be cancelled
    with watched.running("run_all.sh", "--from", "submit_build", env={"TOKEN": "secret"}):
        watched.let_run("build", watching=True)
        watched.let_run("job", watching=True)
    assert (world.root / "work" / "result").read_text() == "devel\n"
    watched.run("cleanup.sh")


def sync_in_spite_of_everything(watched: Watched) -> None:
    """A line that is down, a place where nothing can be cloned, one where nothing can be unpacked."""
    world = watched.world
    (world.state / "branch").write_text("left_behind\n")
    with watched.line_down():
        watched.run("sync.sh", code=5)
    (world.root / "code").write_text("in the way\n")
    watched.run("sync.sh", code=5)
    (world.root / "code").unlink()
    for folder in ("code", "work"):
        (world.root / folder).mkdir()
    shutil.chown(world.root / "code", world.cluster["GEN_USER"])
    watched.run("sync.sh", code=5)
    (world.root / "work").rmdir()
    watched.run("sync.sh")


def hang_in_a_batch_script_while_slurm_stumbles(watched: Watched) -> None:
    world = watched.world
    script = world.folder / "own.slurm"
    script.write_text('#!/bin/bash\necho 1 >"$WORK_DIR/result"\necho Hang detected\nsleep 60\n')
    # The work folder lies in the clone: sync has to look after it.
    watched.make_bundle(command=None, script_path=str(script), remote_work_dir=None, mfa_style=None)
    watched.fault("login/preflight.sh", "squeue").write_text(TOO_OLD)
    watched.run("preflight.sh", code=3)
    for login in ("preflight", "submit", "poll", "cleanup"):
        watched.fault(f"login/{login}.sh", "squeue").write_text(UNREACHABLE)
    for step in ("preflight.sh", "sync.sh"):
        watched.run(step)
    watched.fault("login/submit.sh", "sbatch").write_text(REFUSED)
    watched.run("submit.sh", code=7)
    watched.fault("login/submit.sh", "flock").write_text("echo 'No locks available' >&2; exit 66\n")
    watched.fault("login/submit.sh", "sbatch").write_text(ANSWER_LOST)
    watched.run("submit.sh")
    # Nobody has noted the id, and the queue does not know it any more: accounting does.
    (world.state / "job.id").unlink()
    for note in world.root.rglob("submitted/*.id"):
        note.unlink()
    watched.fault("login/submit.sh", "squeue").write_text("exit 0\n")
    watched.run("submit.sh")
    watched.let_run("job", watching=False, until="RUNNING")
    with watched.busy():
        watched.run("monitor.sh", code=9)
    watched.run("collect.sh")
    watched.run("cleanup.sh")
    assert not list(watched.tools.glob("*.fault"))
    watched.run("run_all.sh", "--dry-run")
    with watched.line_down():
        watched.run("run_all.sh", code=3)  # a new run: the record of the last one is put aside


def test_what_calls_names_is_all_that_a_script_needs_on_its_path(watched: Watched) -> None:
    assert watched.missing() == []


def test_each_program_that_a_header_names_is_called(watched: Watched) -> None:
    assert watched.named - watched.called == set()


def test_what_a_script_writes_lies_in_the_places_that_its_header_names(watched: Watched) -> None:
    assert watched.lies == []


def test_each_place_that_a_header_names_is_written_to(watched: Watched) -> None:
    assert watched.named_places - watched.written == set()
