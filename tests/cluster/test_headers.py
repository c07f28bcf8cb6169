"""What is said to Slurm: the time limits, names and logs that it makes of it, and jobs that start twice."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_bundle.quoting import sbatch
from slurm_bundle.walltime import format_walltime, parse_walltime
from tests.cluster.conftest import World, wait_for
from tests.forms import JOB_NAMES, WALLTIMES

pytestmark = pytest.mark.cluster


@pytest.fixture
def endless(world: World) -> Iterator[str]:
    """A partition without a limit of its own."""
    world.slurm("scontrol", "create", "PartitionName=endless", "Nodes=n1,n2", "MaxTime=INFINITE", "State=UP")
    yield "endless"
    world.slurm("scancel", "--partition=endless")
    world.slurm("scontrol", "delete", "PartitionName=endless")


def submit(world: World, options: list[str], *, hold: bool = True) -> str:
    """Submit a job whose options stand in its header as a bundle's do; gives its id."""
    script = world.root / "header.slurm"
    common = [f"--account={world.spec['account']}", "--ntasks=1"]
    lines = [f"#SBATCH {sbatch(option)}" for option in (*options, *common)]
    script.write_text("\n".join(["#!/bin/bash", *lines, "echo here", ""]))
    user = ("runuser", "-u", world.cluster["GEN_USER"], "--", "env", "-C", str(world.root))
    job = world.slurm(*user, "sbatch", "--parsable", *(["--hold"] if hold else []), str(script))
    assert job.isdecimal(), (options, job)
    return job


def known_jobs(world: World) -> dict[str, dict[str, str]]:
    """What the controller knows of each job, by its id."""
    lines = world.slurm("scontrol", "--oneliner", "show", "job").splitlines()
    found = [dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line)) for line in lines]
    return {one["JobId"]: one for one in found if "JobId" in one}


def whole_minutes(limit: str) -> str:
    """A limit as Slurm counts it."""
    seconds = parse_walltime(limit)
    return "UNLIMITED" if seconds is None else format_walltime(-(-seconds // 60) * 60)


def test_a_time_limit_means_to_slurm_what_gen_makes_of_it(world: World, endless: str) -> None:
    # TIM-01, TIM-02: what gen writes, and, where Slurm knows the form itself, what the user wrote.
    common = [f"--partition={endless}", "--job-name=limits"]
    ours = {text: submit(world, [*common, f"--time={normal}"]) for text, normal in WALLTIMES}
    own_forms = [text for text, _ in WALLTIMES if not re.search("[dhms]$", text, re.IGNORECASE)]
    theirs = {text: submit(world, [*common, f"--time={text}"]) for text in own_forms}
    known = known_jobs(world)
    for text, normal in WALLTIMES:
        assert known[ours[text]]["TimeLimit"] == whole_minutes(normal), text
    assert {text: known[job]["TimeLimit"] for text, job in theirs.items()} == {
        text: known[ours[text]]["TimeLimit"] for text in own_forms
    }
    assert len(own_forms) > 25


def test_a_job_name_comes_out_of_slurm_as_it_went_in_and_so_does_a_log_named_after_it(world: World) -> None:
    # HDR-02, HDR-05
    common = [f"--partition={world.spec['partition']}", "--time=1", "--output=log_%x_%j.out"]
    jobs = {name: submit(world, [*common, f"--job-name={name}"], hold=False) for name in JOB_NAMES}
    shown = world.slurm("squeue", "--noheader", "--states=all", "--format=%i %j", "--jobs", ",".join(jobs.values()))
    assert dict(line.split(" ", 1) for line in shown.splitlines()) == {job: name for name, job in jobs.items()}
    logs = [world.root / f"log_{name}_{job}.out" for name, job in jobs.items()]
    wait_for(lambda: all(log.exists() and log.read_text() == "here\n" for log in logs))


def test_percent_signs_and_odd_names_lead_to_the_log_that_slurm_writes_and_a_job_without_a_limit_runs(
    world: World, endless: str
) -> None:
    # HDR-01, HDR-05, HDR-07, TIM-03
    name, work = "a&b 50%x,%j", f"{world.root}/w%q 100%"
    world.bundle(
        job_name=name,
        log_file_pattern="%x_%u_%j_%A_100%%.out",
        remote_work_dir=work,
        partition=endless,
        time_limit="-1",
        command="echo first line; sleep 4; echo all passed",
        success_patterns=["all passed"],
    )
    running = world.start("run_all.sh")
    wait_for(lambda: world.kept("job.id"))
    known = known_jobs(world)[world.kept("job.id")]
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert "RUNNING: first line" in said
    job = world.kept("job.id")
    log = Path(work) / f"{name}_{world.cluster['GEN_USER']}_{job}_{job}_100%.out"
    assert world.kept("job.out") == str(log)
    assert log.read_text() == "first line\nall passed\n"
    assert (known["JobName"], known["TimeLimit"], known["Requeue"]) == (name, "UNLIMITED", "0")
    assert not [value for value in known.values() if set("$~") & set(value)]


def test_a_job_is_not_harmed_by_what_the_site_exports_or_keeps_back(world: World) -> None:
    # HDR-10
    world.bundle(command='echo "$GREETING" >"$WORK_DIR/seen"', env={"GREETING": "0,1,2"})
    for step in ("preflight.sh", "sync.sh", "submit.sh", "monitor.sh"):
        ran = world.run(step)
        assert ran.code == 0, ran.said
    script = next(world.root.rglob("job.slurm"))
    seen = next(world.root.rglob("seen"))
    seen.unlink()
    user = ("runuser", "-u", world.cluster["GEN_USER"], "--", "env", "-C", str(seen.parent))
    job = world.slurm(*user, "sbatch", "--parsable", "--export=NONE", str(script))
    wait_for(lambda: world.accounted(job, "State,ExitCode").split("|")[0] in ("COMPLETED", "FAILED"))
    assert world.accounted(job, "State,ExitCode") == "COMPLETED|0:0"
    assert seen.read_text() == "0,1,2\n"


def test_a_log_folder_that_is_gone_is_made_before_submitting_and_explained_afterwards(world: World) -> None:
    # HDR-06
    world.bundle(command="echo all passed", sbatch_options=["--begin=now+5"])
    for step in ("preflight.sh", "sync.sh"):
        assert world.run(step).code == 0
    work = next(world.root.rglob("llm_research.engine"))
    shutil.rmtree(work)
    assert world.run("submit.sh").code == 0
    work.rename(work.with_name("elsewhere"))
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert "0:53 (Slurm could not open the log: its folder is missing or not writable on n" in ran.said
    assert f":{work}/slurm-" in (world.state / "report.txt").read_text()
    assert len(world.jobs_submitted()) == 1


def test_a_job_that_may_start_again_goes_on_in_its_log_and_is_judged_by_its_last_start(world: World) -> None:
    # HDR-11
    first = '[ "${SLURM_RESTART_COUNT:-0}" != 0 ] || sleep 100'
    world.bundle(requeue=True, command=f"echo this is start ${{SLURM_RESTART_COUNT:-0}}; {first}; echo all passed")
    running = world.start("run_all.sh")
    wait_for(lambda: "RUNNING" in world.slurm("squeue", "-h", "-j", world.kept("job.id") or "1", "-o", "%T"))
    job = world.kept("job.id")
    log = Path(world.kept("job.out"))
    wait_for(lambda: log.exists() and "this is start 0" in log.read_text())
    node = world.slurm("squeue", "-h", "-j", job, "-o", "%N")
    world.slurm("scontrol", "requeue", job)
    wait_for(lambda: world.slurm("squeue", "-h", "-j", job, "-o", "%T") == "PENDING")
    # Slurm lets two minutes pass first, and the same node does not take the job again earlier.
    world.slurm("scontrol", "update", f"JobId={job}", f"ExcNodeList={node}", "StartTime=now")
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert log.read_text() == f"this is start 0\nstart 2 of job {job}\nthis is start 1\nall passed\n"
    assert world.jobs_submitted() == [job]
