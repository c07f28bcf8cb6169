"""What the real Slurm answers where it is in trouble, and that nothing is concluded, done again or undone on it."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import ROOT, World, wait_for

pytestmark = pytest.mark.cluster

WAITS = 'until [ -e "$WORK_DIR/go" ]; do sleep 0.2; done; echo all passed'


def impatient(world: World) -> str:
    """A remote_init by which Slurm's commands wait two seconds for an answer, and not ten."""
    conf = world.root / "slurm.conf"
    conf.write_text(f"{Path(world.cluster['SLURM_CONF']).read_text()}\nMessageTimeout=2\n")
    return f"export SLURM_CONF='{conf}'"


def controller(world: World) -> int:
    return int((Path(world.cluster["GEN_CLUSTER_DIR"]) / "run" / "slurmctld.pid").read_text().split()[0])


@contextmanager
def hung_controller(world: World) -> Iterator[None]:
    pid = controller(world)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def dead_controller(world: World) -> Iterator[None]:
    pid = controller(world)
    os.kill(pid, signal.SIGTERM)
    try:
        yield
    finally:
        wait_for(lambda: not Path(f"/proc/{pid}").exists())
        subprocess.run([ROOT / "scripts" / "cluster", "up"], capture_output=True, check=True)


@contextmanager
def lost_node(world: World, node: str) -> Iterator[None]:
    """The node counts as down; what it runs goes on there, as on a node that is only cut off."""
    world.slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        yield
    finally:
        world.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
        wait_for(lambda: not re.search("down|drain", world.slurm("sinfo", "-h", f"--nodes={node}", "--format=%T")))


class Watched:
    """A run_all.sh in the background, and what it has said so far."""

    def __init__(self, world: World) -> None:
        self.path = world.folder / "said"
        with self.path.open("w") as said:
            self.running = subprocess.Popen(
                [world.out / "run_all.sh"],
                env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        return self.path.read_text()

    def wait_for(self, words: str) -> None:
        wait_for(lambda: words in self.said() or self.running.poll() is not None)
        assert words in self.said(), self.said()

    def end(self) -> int:
        return self.running.wait(timeout=90)


def state_of(world: World, column: str = "%T") -> str:
    return world.slurm("squeue", "--noheader", "--states=all", f"--jobs={world.kept('job.id')}", f"--format={column}")


def let_go(world: World) -> None:
    next(world.root.rglob("work_dirs/*/")).joinpath("go").touch()


def set_job(world: World, *settings: str) -> None:
    world.slurm("scontrol", "update", f"JobId={world.kept('job.id')}", *settings)


@pytest.mark.req("R55", "R54")
def test_a_controller_that_hangs_and_one_that_is_gone_are_borne_with(world: World) -> None:
    world.bundle(command=WAITS, remote_init=impatient(world))
    watched = Watched(world)
    watched.wait_for("RUNNING")
    with hung_controller(world):
        watched.wait_for("Socket timed out on send/recv operation. Nothing is concluded; asking again")
    with dead_controller(world):
        watched.wait_for("Unable to contact slurm controller (connect failure). Nothing is concluded; asking again")
    let_go(world)
    assert watched.end() == 0, watched.said()
    assert world.jobs_submitted() == [world.kept("job.id")]


def hold_back(world: World, command: str) -> str:
    """A remote_init by which a command of Slurm leaves `called`, and waits for `go-on` before it is really called."""
    fakes = world.root / "bin"
    fakes.mkdir()
    (fakes / command).write_text(
        f"#!/bin/sh\ntouch '{world.root}/called'\nuntil [ -e '{world.root}/go-on' ]; do sleep 0.1; done\n"
        f'exec /usr/bin/{command} "$@"\n'
    )
    (fakes / command).chmod(0o755)
    world.slurm("chown", "-R", world.cluster["GEN_USER"], str(world.root))
    return f"export PATH='{fakes}':$PATH"


@pytest.mark.req("B20")
def test_a_submission_that_slurm_took_after_sbatch_gave_up_is_found_and_not_repeated(world: World) -> None:
    held = hold_back(world, "sbatch")
    world.bundle(command="true", remote_init=f"{held}; {impatient(world)}")
    watched = Watched(world)
    wait_for((world.root / "called").exists)
    with hung_controller(world):
        (world.root / "go-on").touch()
        submitted = next(world.root.rglob("submitted/*.slurm"))
        wait_for(lambda: not world.slurm("pgrep", "--full", f"sbatch.*{submitted.name}"))
    assert watched.end() == 0, watched.said()
    assert "sbatch says: sbatch: error: Batch job submission failed: Socket timed out" in watched.said()
    assert world.jobs_submitted() == [world.kept("job.id")]
    assert submitted.with_suffix(".slurm.ran").read_text().strip() == world.kept("job.id")


@pytest.mark.req("R48")
def test_while_the_controller_is_silent_nothing_is_cancelled_or_removed(world: World) -> None:
    world.bundle(command=WAITS, remote_init=impatient(world), monitor_timeout="1s")
    assert world.run("run_all.sh").code == 8
    with hung_controller(world):
        ran = world.run("cleanup.sh")
        assert ran.code == 13, ran.said
        assert "Socket timed out on send/recv operation. Nothing was cancelled or removed" in ran.said
    assert list(world.root.rglob("submitted/*.slurm"))
    assert state_of(world) in ("RUNNING", "PENDING")
    assert world.run("cleanup.sh").code == 0
    assert not list(world.root.rglob("submitted/*.slurm"))


@pytest.mark.req("B17", "R54")
def test_a_job_whose_node_is_lost_and_that_slurm_starts_again_is_one_job(world: World) -> None:
    world.bundle(command='[ -z "${SLURM_RESTART_COUNT-}" ] || exec echo all passed; sleep 300')
    watched = Watched(world)
    watched.wait_for("RUNNING")
    set_job(world, "Requeue=1")
    node = state_of(world, "%N")
    with lost_node(world, node):
        watched.wait_for("was requeued (restart 1): Slurm runs it again, under the same id")
        set_job(world, "StartTime=now", f"ExcNodeList={node}")
        assert watched.end() == 0, watched.said()
    assert world.report()["status"] == "PASSED"
    assert world.jobs_submitted() == [world.kept("job.id")]


@pytest.mark.req("R56", "B17")
def test_a_job_that_was_requeued_and_held_is_told_with_the_command_that_releases_it(world: World) -> None:
    world.bundle(command=f'[ -z "${{SLURM_RESTART_COUNT-}}" ] || exec echo all passed; {WAITS}')
    watched = Watched(world)
    watched.wait_for("RUNNING")
    set_job(world, "Requeue=1")
    job = world.kept("job.id")
    world.slurm("scontrol", "requeuehold", job)
    watched.wait_for(f"It is held; release it on {world.spec['ssh_host']} with: scontrol release {job}")
    world.slurm("scontrol", "release", job)
    set_job(world, "StartTime=now")
    assert watched.end() == 0, watched.said()


@pytest.mark.req("R56")
def test_a_job_over_the_limit_of_its_partition_is_told_and_left_alone(world: World) -> None:
    short = world.cluster["GEN_PARTITION_SHORT"]
    world.bundle(command="true", partition=short, sbatch_options=["--begin=now+60"], monitor_timeout="15s")
    watched = Watched(world)
    watched.wait_for("PENDING (BeginTime")
    world.slurm("scontrol", "update", f"PartitionName={short}", "MaxTime=1")
    try:
        set_job(world, "StartTime=now")
        watched.wait_for("will not start as it is: PartitionTimeLimit")
        assert watched.end() == 8, watched.said()
    finally:
        world.slurm("scontrol", "update", f"PartitionName={short}", "MaxTime=30")
    assert "hang detected" not in watched.said()
    assert world.jobs_submitted() == [world.kept("job.id")]


@pytest.mark.req("R54", "B27")
@pytest.mark.parametrize(
    ("lines", "code", "exit_code", "said"),
    [
        ("echo all passed; exit 3", 1, "3:0", "failed with exit code 3:0"),
        ("echo all passed; kill -9 $$", 1, "0:9", "0:9 (killed by signal 9"),
        ("scancel $SLURM_JOB_ID; sleep 60", 11, "0:", "was cancelled"),
        ("srun false || true; srun echo all passed", 0, "0:0", "success pattern: all passed"),
    ],
)
def test_the_exit_code_of_the_job_counts_and_both_halves_are_told(
    world: World, lines: str, code: int, exit_code: str, said: str
) -> None:
    script = world.folder / "own.slurm"
    script.write_text(f"#!/bin/bash\n{lines}\n")
    own: dict[str, Any] = {"command": None, "script_path": str(script)}
    world.bundle(**own, success_patterns=["passed"], failure_patterns=[])
    ran = world.run("run_all.sh")
    assert ran.code == code, ran.said
    assert world.report()["slurm_exit"].startswith(exit_code)
    assert said in world.report()["reason"]
