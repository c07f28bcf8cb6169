"""The line drops during each step, in one way or another: nothing is lost, nothing is done twice."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import World, wait_for
from tests.cluster.link import Link

pytestmark = pytest.mark.cluster

# In place of a command of the login node: it does its work, says so, and takes its time to come back.
SLOW = """#!/bin/sh
{command} "$@"
code=$?
if [ -e "{folder}/slow-{name}" ]; then
    rm -f "{folder}/slow-{name}"
    touch "{folder}/in-{name}"
    sleep 3
fi
exit $code
"""


@pytest.fixture
def link(world: World) -> Iterator[Link]:
    """A line that can be cut; ssh notices in seconds that it is dead."""
    line = Link(int(world.cluster["GEN_SSH_PORT"]))
    alive = ["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2"]
    world.spec["ssh_options"] = [*line.ssh_options(), *alive]
    folder = world.root / "slow"
    folder.mkdir()
    folder.chmod(0o777)
    for name in ("git", "sbatch"):
        command = folder / name
        command.write_text(SLOW.format(command=f"/usr/bin/{name}", folder=folder, name=name))
        command.chmod(0o755)
    world.spec["remote_init"] = f"PATH={folder}:$PATH"
    yield line
    line.close()


class Trap:
    """Waits until a command of the login node has done its work and is slow to come back."""

    def __init__(self, world: World, name: str) -> None:
        self.sign = world.root / "slow" / f"in-{name}"
        self.sign.unlink(missing_ok=True)
        (world.root / "slow" / f"slow-{name}").touch()

    def wait(self) -> None:
        wait_for(self.sign.exists)


@pytest.mark.req("R55", "B9", "B20")
def test_dropped_in_every_step_it_ends_passed_with_one_build_and_one_job(world: World, link: Link) -> None:
    """The line is cut once in each step, and run_all.sh is called again."""
    world.bundle(build_project=True, build_command="echo built", command="sleep 6; echo all passed")
    link.cut()
    ran = world.run("run_all.sh")
    assert ran.code == 3, ran.said
    assert "cannot reach" in ran.said

    for name, step in (("git", "sync"), ("sbatch", "submit_build"), ("sbatch", "submit")):
        link.mend()
        trap = Trap(world, name)
        running = world.start("run_all.sh")
        trap.wait()
        link.cut()
        _, said = running.communicate(timeout=60)
        assert running.returncode == 13, said
        last = [line for line in said.splitlines() if line.startswith(f"{step}: no answer from ")]
        assert last, said
        assert world.branches_on_origin() == ["main"]
        if step == "submit_build":
            assert len(world.jobs_submitted()) == 1

    link.mend()
    running = world.start("run_all.sh")
    wait_for(
        lambda: "RUNNING" in world.slurm("squeue", "--noheader", "--format=%T", f"--jobs={world.kept('job.id') or 0}")
    )
    link.cut()
    before = len(world.sessions())
    wait_for(lambda: len(world.sessions()) >= before + 2)
    link.mend()
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert "Nothing is concluded; asking again" in said
    assert world.report()["status"] == "PASSED"
    jobs = world.jobs_submitted()
    assert jobs == sorted([world.kept("build.id"), world.kept("job.id")], key=int)
    assert [world.accounted(job, "State") for job in jobs] == ["COMPLETED", "COMPLETED"]


@pytest.mark.req("R55")
@pytest.mark.parametrize("step", ["preflight", "collect"])
def test_a_line_that_dies_slowly_is_noticed(world: World, link: Link, step: str) -> None:
    """Nothing is closed, nothing comes through any more: ssh has to find out by itself."""
    world.bundle(command="echo all passed")
    if step == "collect":
        assert world.run("run_all.sh").code == 0
    link.freeze()
    ran = world.run(f"{step}.sh", limit=60)
    assert ran.code == (3 if step == "preflight" else 13), ran.said
    assert len(ran.said.splitlines()) <= 2


def end_sessions(world: World) -> None:
    """Kill what serves the sessions with the login node, with all that they run."""
    daemon = (Path(world.cluster["GEN_CLUSTER_DIR"]) / "run" / "sshd_login.pid").read_text().split()[0]
    found = subprocess.run(["pgrep", "-P", daemon], capture_output=True, text=True, check=False).stdout.split()
    for pid in found:
        below = subprocess.run(["pgrep", "-g", pid], capture_output=True, text=True, check=False).stdout.split()
        for process in {pid, *below}:
            os.kill(int(process), signal.SIGKILL)


@pytest.mark.req("R55", "B20")
def test_the_other_side_of_the_session_is_killed_after_sbatch_took_the_job(world: World, link: Link) -> None:
    world.bundle(command="echo all passed")
    trap = Trap(world, "sbatch")
    running = world.start("run_all.sh")
    trap.wait()
    end_sessions(world)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 13, said
    assert world.kept("job.id") == ""
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.jobs_submitted() == [world.kept("job.id")]


@pytest.mark.req("B20")
def test_a_submission_that_still_goes_on_over_there_is_not_overtaken(world: World, link: Link) -> None:
    """The line was cut before sbatch was called; the far side goes on for a while, and it is tried again at once."""
    world.bundle(command="echo all passed")
    assert world.run("run_all.sh", "--only", "preflight").code == 0
    assert world.run("sync.sh").code == 0
    slow = world.root / "slow" / "sbatch"
    slow.write_text(f'#!/bin/sh\ntouch "{slow.parent}/in-sbatch"\nsleep 4\nexec /usr/bin/sbatch "$@"\n')
    running = world.start("submit.sh")
    wait_for((slow.parent / "in-sbatch").exists)
    link.cut()
    running.communicate(timeout=60)
    link.mend()
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.jobs_submitted() == [world.kept("job.id")]
