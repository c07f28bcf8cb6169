"""Passed means proven: none of the ways in which Slurm and pyxis fail with exit code 0 ends in PASSED."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import World

pytestmark = pytest.mark.cluster

IMAGE = "registry.example.org/tensorrt-llm/devel:1.0"
IN_CONTAINER = {"container_image": IMAGE, "command": "echo all passed"}
TWO_TASKS = {"recipe": "distributed", "node_count": 2, "required_devices_per_node": 1}
BUILD = {"container_image": IMAGE, "build_project": True, "build_command": "true", "command": "true"}


@pytest.fixture
def break_containers(cluster: dict[str, str]) -> Iterator[Callable[[str], object]]:
    """Have the stand-in for pyxis fail in the given way, a word or a word with a node (launch, no-image-n2, save)."""
    if cluster["GEN_CONTAINERS"] != "stand-in":
        pytest.fail("the real pyxis cannot be told to fail; run this on a cluster with the stand-in")
    faults = Path(cluster["GEN_FAULTS"])
    yield lambda words: faults.write_text(f"{words}\n")
    faults.write_text("")


@pytest.fixture(autouse=True)
def undrained(world: World) -> Iterator[None]:
    """A node where a batch script could not be launched is drained by Slurm."""
    yield
    for node in world.slurm("sinfo", "--noheader", "--Node", "--states=drain", "--format=%N").split():
        world.slurm("scontrol", "update", f"nodename={node}", "state=resume")


def own_script(world: World, *lines: str, **changes: Any) -> dict[str, Any]:
    """What the spec says for a batch script of the user's own."""
    script = world.folder / "own.slurm"
    script.write_text("\n".join(("#!/bin/bash", *lines, "")))
    return {"command": None, "script_path": str(script), **changes}


def in_front(script: Path, line: str) -> None:
    """Put a line before the first command of a batch script of the bundle."""
    before, command, after = script.read_text().partition("\ncase ")
    assert command
    script.write_text(f"{before}\n{line}{command}{after}")


@pytest.mark.req("B27", "R54")
@pytest.mark.parametrize(
    ("fault", "changes", "why"),
    [
        ("launch", IN_CONTAINER, "task 0 of 1 never started"),
        ("launch-n2", {**IN_CONTAINER, **TWO_TASKS}, "task 1 of 2 never started"),
        ("no-image-n2", {**IN_CONTAINER, **TWO_TASKS, "command": "sleep 100"}, "exit code"),
        ("", {"command": "kill -9 $$"}, "task 0 of 1 ended with exit code 137"),
        ("", {**TWO_TASKS, "command": '[ "$RANK" = 0 ] || kill -9 $PPID'}, "task 1 of 2 was stopped before its end"),
    ],
)
def test_a_task_that_did_not_run_to_its_end_fails_the_job(
    world: World, break_containers: Callable[[str], object], fault: str, changes: dict[str, Any], why: str
) -> None:
    break_containers(fault)
    world.bundle(**changes)
    ran = world.run("run_all.sh", limit=90)
    assert ran.code == 1, ran.said
    report = world.report()
    assert (report["status"], report["proven"]) == ("FAILED", False)
    assert why in report["reason"]


@pytest.mark.req("B27")
def test_a_variable_of_the_image_does_not_change_what_is_run(world: World) -> None:
    image = world.root / "image"
    shutil.copytree(f"{world.cluster['GEN_IMAGES']}/devel", image, symlinks=True)
    with (image / "etc" / "environment").open("a") as variables:
        variables.write("COMMAND=/dev/null\nMARKS=/tmp\nREPO_DIR=/tmp\n")
    world.bundle(container_image=str(image), command='echo "in $PWD"')
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.report()["excerpt"]["out"] == [f"in {world.repo_there}"]


@pytest.mark.req("B27")
def test_a_node_without_the_repository_does_not_run_the_command_elsewhere(world: World) -> None:
    world.bundle(command="true", remote_work_dir=f"{world.root}/work", sbatch_options=["--hold"])
    for step in ("sync.sh", "submit.sh"):
        assert world.run(step).code == 0
    world.repo_there.rename(world.root / "gone")
    world.slurm("scontrol", "release", world.kept("job.id"))
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert f"cannot enter {world.repo_there} on n" in "".join(world.report()["excerpt"]["err"])


@pytest.mark.req("B27", "R54")
def test_a_batch_script_that_was_killed_fails_the_job(world: World) -> None:
    world.bundle(command='scancel --signal=KILL --batch "$SLURM_JOB_ID"; sleep 100')
    ran = world.run("run_all.sh", limit=90)
    assert ran.code == 1, ran.said
    assert world.report()["status"] == "FAILED"
    assert "signal 9" in world.report()["reason"]


@pytest.mark.req("B27")
def test_without_accounting_a_launch_that_never_happened_is_no_success_either(
    world: World, break_containers: Callable[[str], object]
) -> None:
    break_containers("launch")
    fakes = world.root / "bin"
    fakes.mkdir()
    for name in ("sacct", "scontrol"):
        (fakes / name).write_text('#!/bin/sh\necho "Slurm accounting storage is disabled" >&2\nexit 1\n')
        (fakes / name).chmod(0o755)
    world.bundle(**IN_CONTAINER, remote_init=f"export PATH={fakes}:$PATH")
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert "task 0 of 1 never started" in world.report()["reason"]


@pytest.mark.req("B27", "R34", "R54")
@pytest.mark.parametrize(
    ("fault", "line", "why"),
    [
        ("launch", f"srun --container-image={IMAGE} true", "task 0 launch failed: Plugin initialization failed"),
        ("save", f"srun --container-image={IMAGE} --container-save=$WORK_DIR/x.sqsh true", "pyxis: failed to export"),
        ("", "srun --container-mounts=/tmp:/data --container-workdir=/data true", "pyxis: ignoring --container-mounts"),
        ("", "srun false", "srun: error: n1: task 0: Exited with exit code 1"),
    ],
)
def test_a_step_that_failed_in_your_own_script_fails_the_job_though_the_script_goes_on(
    world: World, break_containers: Callable[[str], object], fault: str, line: str, why: str
) -> None:
    break_containers(fault)
    world.bundle(**own_script(world, line, "echo all passed", success_patterns=["passed"]))
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    report = world.report()
    assert (report["status"], report["proven"], report["slurm_state"]) == ("FAILED", False, "COMPLETED")
    assert why in report["reason"]


@pytest.mark.req("B27", "R34")
def test_an_empty_list_says_that_no_line_of_the_log_is_a_failure(world: World) -> None:
    lines = ("srun false", "echo all passed")
    world.bundle(**own_script(world, *lines, success_patterns=["passed"], failure_patterns=[]))
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.report()["proven"] is True


@pytest.mark.req("B27", "R34")
def test_your_own_script_that_never_ran_leaves_no_log_and_is_no_success(
    world: World, break_containers: Callable[[str], object]
) -> None:
    break_containers("launch")
    world.bundle(**own_script(world, f"#SBATCH --container-image={IMAGE}", "echo all passed"))
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert world.report()["slurm_state"] == "COMPLETED"
    assert "there is no log: it never ran" in world.report()["reason"]


@pytest.mark.req("B27", "R27")
@pytest.mark.parametrize(
    ("fault", "changes", "why"),
    [
        ("launch", BUILD, "build.sh never started"),
        ("no-image", BUILD, "build.sh never started"),
        ("", {**BUILD, "build_command": "kill -9 $PPID"}, "build.sh did not run to its end"),
    ],
)
def test_a_build_that_did_not_run_to_its_end_is_a_failed_build(
    world: World, break_containers: Callable[[str], object], fault: str, changes: dict[str, Any], why: str
) -> None:
    break_containers(fault)
    world.bundle(**changes)
    ran = world.run("run_all.sh")
    assert ran.code == 6, ran.said
    assert world.report()["status"] == "BUILD_FAILED"
    assert why in world.report()["reason"]
    assert world.jobs_submitted() == [world.kept("build.id")]


@pytest.mark.req("B27", "R27", "R54")
@pytest.mark.parametrize("line", ["exit 0", f"#SBATCH --container-image={IMAGE}"])
@pytest.mark.parametrize(("script", "code"), [("build.slurm", 6), ("recipes/job.slurm", 1)])
def test_what_slurm_calls_completed_without_marks_did_not_pass(
    world: World, break_containers: Callable[[str], object], script: str, code: int, line: str
) -> None:
    """The batch script itself ends before it did anything, or is never launched."""
    break_containers("launch")
    world.bundle(build_project=script == "build.slurm", build_command="true", command="true")
    in_front(world.out / script, line)
    ran = world.run("run_all.sh")
    assert ran.code == code, ran.said
    report = world.report()
    assert (report["slurm_state"], report["slurm_exit"], report["proven"]) == ("COMPLETED", "0:0", False)
    assert report["status"] == ("BUILD_FAILED" if code == 6 else "FAILED")
    assert len(world.jobs_submitted()) == 1
