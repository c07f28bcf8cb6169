"""The main job, end to end: from a spec to a job that ran on a real cluster, and back to the report."""

import os
import signal
from pathlib import Path

import pytest

from tests.cluster.conftest import World, wait_for
from tests.project import describe_tree, git, photograph, read_fingerprint

pytestmark = pytest.mark.both_worlds

IN_CONTAINER = {
    "container_image": "registry.example.org/tensorrt-llm/devel:1.0",
    "gpus_per_node": 8,
    "device_type": "H200",
    "build_project": True,
}


def work_there(world: World) -> Path:
    return world.repo_there / "work_dirs" / "llm_research.engine"


@pytest.mark.req(
    "R6", "R12", "R13", "R15", "R16", "R17", "R18", "R19", "R20", "R28", "R30", "R41", "R10", "R54", "R63", "B1"
)
def test_what_runs_on_the_node_is_the_working_tree_and_nothing_here_has_changed(world: World) -> None:
    world.bundle()
    before = photograph(world.repo)
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert photograph(world.repo) == before
    assert read_fingerprint(work_there(world) / "tree.json") == describe_tree(world.repo)
    assert world.branches_on_origin() == ["main"]
    report = world.report()
    assert (report["status"], report["proven"], report["slurm_state"]) == ("PASSED", True, "COMPLETED")
    assert report["excerpt"]["out"][-1] == "all passed"
    assert world.jobs_submitted() == [world.kept("job.id")]
    for call in world.sessions():
        assert call.endswith(f"ControlPath=~/.ssh/gen-%C {world.spec['ssh_host']} bash -s")


@pytest.mark.req("R2", "R21", "R22", "R23", "R24", "R25", "R26", "R27", "R29", "R36", "R38", "R46", "B27")
def test_the_code_is_built_on_a_node_in_the_container_and_then_runs_in_it(world: World) -> None:
    world.bundle(**IN_CONTAINER, command=f"{world.cluster['GEN_TELL_IMAGE']} && ./cpp/build/engine")
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    build, job = world.kept("build.id"), world.kept("job.id")
    assert world.jobs_submitted() == [build, job]
    columns = world.accounted(build, "JobName,NNodes,Timelimit,State,ExitCode,ReqTRES%90").split("|")
    assert columns[:5] == ["llm_research-trtllm.build", "1", "02:00:00", "COMPLETED", "0:0"]
    assert "gres/gpu=8" in columns[5]
    assert "gres/gpu=8" in world.accounted(job, "ReqTRES%90")
    log = Path(world.kept("build.out"))
    assert log.name == f"build_{build}.srun.log"
    assert "architectures 90-real, nvtx True" in log.read_text()
    assert f"build {build}: RUNNING: [" in ran.said
    for script in ("build.slurm", "build.sh"):
        assert os.access(log.parent.parent / script, os.X_OK)
    excerpt = world.report()["excerpt"]["out"]
    assert "devel" in excerpt[0]
    assert excerpt[-1] == "engine: 60 of 60 parts"


@pytest.mark.req("R27", "R28", "R19")
def test_after_a_failed_build_nothing_is_submitted(world: World) -> None:
    # GEN-13
    (world.repo / "cpp" / "src" / "part_30.c").write_text("int part_30(void) { return not_there; }\n")
    world.bundle(**IN_CONTAINER)
    before = photograph(world.repo)
    ran = world.run("run_all.sh")
    assert ran.code == 6, ran.said
    report = world.report()
    assert report["status"] == "BUILD_FAILED"
    assert len(report["excerpt"]["out"]) <= 100
    assert any("not_there" in line for line in report["excerpt"]["out"] + report["excerpt"]["err"])
    assert world.jobs_submitted() == [world.kept("build.id")]
    assert world.branches_on_origin() == ["main"]
    assert photograph(world.repo) == before


@pytest.mark.req("R29")
def test_a_build_command_of_the_spec_takes_the_place_of_build_wheel(world: World) -> None:
    world.bundle(
        build_project=True,
        build_command='mkdir -p cpp/build\nmake -C cpp build/part_00.o build/main.o\necho "it\'s $PWD"',
        command="ls cpp/build",
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.report()["excerpt"]["out"][-2:] == ["main.o", "part_00.o"]
    assert f"it's {world.repo_there}" in Path(world.kept("build.out")).read_text()


@pytest.mark.req("R54", "R57", "R42")
def test_a_failed_job_is_reported_with_the_ends_of_its_logs_only(world: World) -> None:
    world.bundle(command="seq 1 5000; seq 1 5000 >&2; exit 7")
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    report = world.report()
    assert (report["status"], report["slurm_exit"]) == ("FAILED", "7:0")
    assert report["excerpt"]["out"] == [str(number) for number in range(4901, 5001)]
    assert len(report["excerpt"]["err"]) == 50
    assert len((world.state / "answers").read_bytes()) < 20_000


@pytest.mark.req("R51", "R52", "R54")
@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_job_that_says_hang_detected_is_cancelled(world: World, stream: str) -> None:
    where = ">&2" if stream == "err" else ""
    world.bundle(command=f"seq 1 3000; sleep 3; echo 'rank 3: Hang Detected, waiting' {where}; sleep 300")
    ran = world.run("run_all.sh")
    assert ran.code == 9, ran.said
    assert world.report()["status"] == "HANG_DETECTED"
    assert "rank 3: Hang Detected" in world.report()["reason"]
    assert len(world.report()["excerpt"]["out"]) == 200
    wait_for(
        lambda: world.slurm("sacct", "-X", "-n", "-P", f"-j{world.kept('job.id')}", "-o", "State").startswith(
            "CANCELLED"
        )
    )


@pytest.mark.req("R53", "R48")
def test_the_watch_ends_after_its_time_and_leaves_the_job_alone(world: World) -> None:
    world.bundle(command="sleep 300", monitor_timeout="6s")
    ran = world.run("run_all.sh")
    job = world.kept("job.id")
    assert ran.code == 8, ran.said
    assert world.report()["status"] == "TIMEOUT"
    assert world.slurm("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING"
    again = world.run("run_all.sh")
    assert again.code == 8, again.said
    assert world.jobs_submitted() == [job]
    cleaned = world.run("cleanup.sh")
    assert cleaned.code == 0, cleaned.said
    assert f"job {job} is cancelled" in cleaned.said
    assert not list(work_there(world).glob("scripts-*"))
    ended = world.run("run_all.sh")
    assert ended.code == 11, ended.said


@pytest.mark.req("B9", "B20", "R55")
def test_killed_after_submitting_it_goes_on_to_the_same_job(world: World) -> None:
    # GEN-13
    world.bundle(command="sleep 8; echo all passed", build_project=True, build_command="true")
    running = world.start("run_all.sh")
    wait_for(lambda: world.kept("done.submit"))
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    job = world.kept("job.id")
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert "submit_build was done before" in ran.said
    assert "run_all: submit was done before" in ran.said or f"job {job} was submitted before" in ran.said
    assert world.kept("job.id") == job
    assert world.jobs_submitted() == [world.kept("build.id"), job]
    after = world.run("run_all.sh")
    assert after.code == 0, after.said
    assert len(world.jobs_submitted()) == 4


@pytest.mark.req("B20")
def test_a_job_whose_id_was_never_noted_is_found_and_not_submitted_again(world: World) -> None:
    world.bundle(command="sleep 10; echo all passed")
    assert world.run("run_all.sh", "--only", "preflight").code == 0
    assert world.run("sync.sh").code == 0
    assert world.run("submit.sh").code == 0
    job = world.kept("job.id")
    (world.state / "job.id").unlink()
    for note in work_there(world).glob("scripts-*/submitted/*.id"):
        note.unlink()
    again = world.run("submit.sh")
    assert again.code == 0, again.said
    assert world.kept("job.id") == job
    assert world.jobs_submitted() == [job]


@pytest.mark.req("R34", "R36", "R38")
def test_the_users_own_batch_script_runs_with_the_flags_of_the_spec(world: World) -> None:
    script = world.folder / "own job.slurm"
    script.write_text(
        '#!/bin/bash\n#SBATCH --job-name=mine --time=1\necho "$WORD in $WORK_DIR"\nsrun hostname\necho 3 passed\n'
    )
    world.bundle(
        command=None,
        script_path=str(script),
        script_name="own.slurm",
        log_file_pattern="own_%j.out",
        success_patterns=["passed"],
        gpus_per_node=2,
        job_name="batch job",
        node_count=2,
        env={"WORD": "a, b's $c"},
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    job = world.kept("job.id")
    shown = world.accounted(job, "JobName,NNodes,Timelimit,ReqTRES%90")
    assert shown.startswith("batch job|2|00:10:00|")
    assert "gres/gpu=4" in shown
    assert world.kept("job.out").endswith(f"/own_{job}.out")
    assert f"a, b's $c in {world.repo_there}/work_dirs/batch_job" in world.report()["excerpt"]["out"]
    assert world.report()["proven"] is True
    lacking = world.bundle(command=None, script_path=str(script), success_patterns=["no such words"])
    assert lacking.exists()
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert "none of the success patterns" in world.report()["reason"]


@pytest.mark.req("R54", "B27")
def test_a_failure_pattern_outweighs_exit_code_0(world: World) -> None:
    world.bundle(command="echo 1 passed; echo 2 FAILED", success_patterns=["passed"], failure_patterns=["FAILED"])
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert "2 FAILED" in world.report()["reason"]


@pytest.mark.req("R56")
def test_a_pending_job_is_told_with_its_reason_and_one_that_can_never_start_with_a_warning(world: World) -> None:
    world.bundle(command="true", monitor_timeout="5s", sbatch_options=["--begin=now+100"])
    ran = world.run("run_all.sh")
    assert ran.code == 8
    assert "PENDING (BeginTime; estimated start: 20" in ran.said
    assert world.run("cleanup.sh").code == 0
    world.bundle(command="true", monitor_timeout="5s", sbatch_options=["--hold"])
    ran = world.run("run_all.sh")
    assert ran.code == 8
    assert "will not start as it is: JobHeldUser" in ran.said
    assert world.run("cleanup.sh").code == 0


@pytest.mark.req("R14")
def test_the_temporary_branch_is_named_after_user_model_and_time(world: World) -> None:
    world.bundle(model_name="llama 3.1/8b")
    (world.origin / "hooks" / "post-receive").write_text(f"#!/bin/sh\ncat >>{world.origin.parent}/pushed\n")
    (world.origin / "hooks" / "post-receive").chmod(0o755)
    ran = world.run("sync.sh")
    assert ran.code == 0, ran.said
    pushed = (world.origin.parent / "pushed").read_text().splitlines()
    names = {line.split()[2] for line in pushed}
    assert len(names) == 1
    assert names.pop().startswith(f"refs/heads/{world.cluster['GEN_USER']}_llama_3_1_8b_20")
    assert git(world.repo_there, "-c", "safe.directory=*", "rev-parse", "HEAD").strip() == world.kept("snapshot")
