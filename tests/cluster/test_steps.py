"""The steps one by one: preflight, what they need, how they are called."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.cluster.conftest import World, wait_for
from tests.script_headers import NOT_OURS, list_libraries

pytestmark = pytest.mark.cluster


@pytest.mark.req("R7", "R10", "R11")
def test_preflight_opens_one_plain_session_and_no_master(world: World) -> None:
    world.bundle()
    ran = world.run("preflight.sh")
    assert ran.code == 0, ran.said
    assert len(world.sessions()) == 1
    assert f"is ready: slurm-wlm 22.05.8, as {world.cluster['GEN_USER']}" in ran.said
    config = (world.out / "config.sh").read_text()
    assert "'ControlMaster=no' '-o' 'ControlPath=~/.ssh/gen-%C'" in config
    assert not list(Path.home().glob(".ssh/gen-*"))


@pytest.mark.req("R7")
def test_a_host_that_does_not_answer_is_told_with_what_to_check(world: World) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    world.bundle(ssh_options=["-p", port])
    ran = world.run("run_all.sh")
    assert ran.code == 3
    assert "Connection refused" in ran.said
    assert "Check the network" in ran.said
    assert "Permission denied" not in ran.said


@pytest.mark.req("R7")
def test_a_refused_key_and_an_unknown_host_are_told_apart(world: World) -> None:
    world.bundle(
        ssh_options=[
            "-o",
            "IdentityFile=/dev/null",
            "-o",
            "IdentityAgent=none",
            "-o",
            "IdentitiesOnly=yes",
            "-l",
            "nobody",
        ],
        slurm_user=None,
    )
    assert "ssh-add -l" in world.run("preflight.sh").said
    world.bundle(ssh_host="no-such-host.invalid")
    ran = world.run("preflight.sh")
    assert ran.code == 3
    assert "Check the name in ssh_host" in ran.said


@pytest.mark.req("R11")
def test_each_thing_that_is_missing_on_the_cluster_has_a_line(world: World) -> None:
    world.bundle(
        remote_cwd=f"{world.root}/not there",
        remote_init="PATH=/nowhere:$PATH; hash -p /nowhere/x sbatch; sbatch() { :; }; unset -f sbatch",
    )
    ran = world.run("preflight.sh")
    assert ran.code == 3
    assert "not there is not there; make it, or correct remote_cwd" in ran.said
    world.bundle(remote_cwd=f"{world.root}/not there", create_remote_cwd=True)
    ran = world.run("preflight.sh")
    assert ran.code == 0, ran.said
    assert (world.root / "not there").is_dir()


@pytest.mark.req("R11")
def test_slurm_that_comes_with_a_module_is_found_through_remote_init(world: World) -> None:
    world.bundle(remote_init="PATH=/bin-without-slurm")
    ran = world.run("preflight.sh")
    assert ran.code == 3
    world.bundle(remote_init='export GREETING="$UNSET_THING"; echo "a talkative module"; false')
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said


@pytest.mark.req("R63", "B9")
def test_dry_run_does_nothing_and_only_and_from_do_what_they_say(world: World) -> None:
    world.bundle()
    ran = world.run("run_all.sh", "--dry-run")
    assert ran.code == 0
    assert "Nothing was done" in ran.out
    assert not world.repo_there.exists()
    assert world.run("run_all.sh", "--only", "sync").code == 0
    assert world.repo_there.exists()
    assert not world.kept("job.id")
    wrong = world.run("run_all.sh", "--from", "nowhere")
    assert wrong.code == 2
    assert "preflight sync submit monitor collect" in wrong.said
    assert world.run("run_all.sh").code == 0
    first = world.kept("job.id")
    again = world.run("run_all.sh", "--from", "submit")
    assert again.code == 0, again.said
    assert world.kept("job.id") != first
    assert "sync was done before" in again.said


def test_each_script_explains_itself(world: World) -> None:
    world.bundle(build_project=True)
    scripts = (path for path in world.out.rglob("*") if path.suffix in (".sh", ".slurm"))
    bundle = {str(path.relative_to(world.out)): path.read_text() for path in scripts}
    sourced = {*list_libraries(bundle), *NOT_OURS}
    for script in sorted(world.out / path for path in bundle if path not in sourced):
        explained = (
            world.start(f"{script.relative_to(world.out)}", "--help")
            if script.stat().st_mode & 0o100
            else world.start_with_bash(script, "--help")
        )
        out, said = explained.communicate(timeout=20)
        assert explained.returncode == 0, (script, said)
        assert "Runs on:" in out, script


@pytest.mark.req("R60")
def test_gen_run_shows_what_the_scripts_say_and_gives_their_exit_code(world: World) -> None:
    world.bundle(command="exit 3")
    ran = world.gen("run", "out", "--json")
    assert ran.code == 1
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert [event["step"] for event in events if event["event"] == "end"] == [
        "preflight",
        "sync",
        "submit",
        "monitor",
        "collect",
    ]
    assert events[-1]["exit_code"] == 1
    assert events[-1]["report"]["status"] == "FAILED"
    again = world.gen("run", "out", "--only", "monitor")
    assert again.code == 1
    assert re.search(r"^ +0:\d\d  monitor: FAILED: job \d+ failed with exit code 3", again.said, re.MULTILINE)


@pytest.mark.req("R63")
def test_a_bundle_that_was_moved_and_cannot_be_written_to_runs_with_its_record_elsewhere(world: World) -> None:
    moved = world.folder / "a moved bundle"
    world.bundle().rename(moved)
    before = {path: path.stat().st_mtime_ns for path in moved.rglob("*")}
    state = world.folder / "state of it"
    world.out.symlink_to(moved)
    ran = world.run("run_all.sh", env={"GEN_STATE_DIR": str(state)})
    assert ran.code == 0, ran.said
    assert json.loads((state / "report.json").read_text())["status"] == "PASSED"
    assert {path: path.stat().st_mtime_ns for path in moved.rglob("*")} == before


@pytest.mark.req("B9")
def test_interrupted_while_it_watches_the_job_goes_on_and_so_does_the_next_run(world: World) -> None:
    world.bundle(command="sleep 15; echo all passed")
    running = world.start("run_all.sh")
    wait_for(lambda: (world.state / "answers").exists() and "queue=RUNNING" in (world.state / "answers").read_text())
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "interrupted; what is submitted goes on" in said
    assert world.slurm("squeue", "--noheader", "--jobs", world.kept("job.id"), "--format=%T") == "RUNNING"
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert len(world.jobs_submitted()) == 1
