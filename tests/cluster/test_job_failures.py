"""Failures of a job that was submitted: it can never start, its log cannot be written, its disk is full."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Ran, World, wait_for
from tests.cluster.trouble import Site, open_site, wait_for_silence

pytestmark = pytest.mark.cluster


@pytest.fixture
def site(world: World) -> Iterator[Site]:
    with open_site(world) as site:
        yield site


def close_partition(site: Site) -> None:
    """Have the jobs of a partition wait; `run_into` opens it again."""
    partition = site.world.spec["partition"] = site.world.cluster["GEN_PARTITION_SHORT"]
    site.world.slurm("scontrol", "update", f"partitionname={partition}", "state=down")
    site.undo.callback(site.world.slurm, "scontrol", "update", f"partitionname={partition}", "state=up")


def submit(site: Site, **changes: Any) -> str:
    """Submit as after a sync, whose place nothing takes here; give the job's id."""
    world = site.world
    world.bundle(**changes)
    world.state.mkdir(exist_ok=True)
    (world.state / "snapshot").write_text("0123456789\n")
    world.repo_there.mkdir(exist_ok=True)
    shutil.chown(world.repo_there, world.cluster["GEN_USER"])
    ran = world.run("submit.sh")
    assert ran.code == 0, ran.said
    return world.kept("job.id")


def work(site: Site) -> Path:
    return Path(site.world.kept("job.out")).parent


def scripts_log(site: Site) -> Path:
    return next(work(site).glob("scripts-*")) / "log"


def held(site: Site) -> str:
    submit(site, sbatch_options=["--hold"], monitor_timeout="3s")
    return "JobHeldUser"


def limit_lowered_later(site: Site) -> str:
    partition = site.world.cluster["GEN_PARTITION_SHORT"]
    job = submit(site, partition=partition, time_limit="20", sbatch_options=["--hold"], monitor_timeout="3s")
    site.world.slurm("scontrol", "update", f"partitionname={partition}", "maxtime=10")
    site.undo.callback(site.world.slurm, "scontrol", "update", f"partitionname={partition}", "maxtime=30")
    site.world.slurm("scontrol", "release", job)
    return "PartitionTimeLimit"


def dependency_that_failed(site: Site) -> str:
    job = submit(site, sbatch_options=["--hold"], monitor_timeout="3s")
    failed = site.world.slurm("sbatch", "--parsable", "--output=/dev/null", "--wrap=false")
    wait_for(
        lambda: site.world.slurm("squeue", "--noheader", "--states=all", f"--jobs={failed}", "--format=%T") == "FAILED"
    )
    site.world.slurm("scontrol", "update", f"jobid={job}", f"dependency=afterok:{failed}")
    site.world.slurm("scontrol", "release", job)
    return "DependencyNeverSatisfied"


@pytest.mark.req("R56", "R53", "R48")
@pytest.mark.parametrize("prepare", [held, limit_lowered_later, dependency_that_failed])
def test_a_job_that_can_never_start_is_told_and_left_to_the_user(site: Site, prepare: Callable[[Site], str]) -> None:
    reason = prepare(site)
    world, job = site.world, site.world.kept("job.id")
    release = f"It is held; release it on {world.cluster['GEN_SSH_HOST']} with: scontrol release {job}, or cancel it"
    way_out = release if prepare is held else "Cancel it with ./cleanup.sh and change the spec, or"
    ran = world.run("monitor.sh")
    assert ran.code == 8, ran.said
    assert f"job {job} will not start as it is: {reason}. {way_out}" in ran.said
    assert f"job {job} is PENDING ({reason}; estimated start: N/A); it was left alone" in ran.said
    assert world.slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T") == "PENDING"
    assert world.run("cleanup.sh").code == 0
    assert not world.slurm("squeue", "--noheader", f"--jobs={job}")
    wait_for_silence(site)


def run_into(site: Site, act: Callable[[], object], **changes: Any) -> Ran:
    """Submit a job, let something happen before it starts, and watch it to its end."""
    close_partition(site)
    submit(site, **changes)
    act()
    site.world.slurm("scontrol", "update", f"partitionname={site.world.spec['partition']}", "state=up")
    ran = site.world.run("monitor.sh")
    assert site.world.run("collect.sh").code == 0
    wait_for_silence(site)
    return ran


@pytest.mark.req("R54")
@pytest.mark.parametrize("how", ["gone", "read-only"])
def test_a_log_that_slurm_cannot_open_is_told_and_a_new_run_makes_its_folder(site: Site, how: str) -> None:
    world = site.world

    def act() -> None:
        if how == "gone":
            shutil.rmtree(work(site))
        else:
            site.mount(work(site), "ro")

    ran = run_into(site, act, command="true")
    assert ran.code == 1, ran.said
    assert "failed with exit code 0:53 (Slurm could not open the log: its folder is missing or not writable" in ran.said
    assert "next: make the folder of the log again with ./run_all.sh --from sync, and see that the nodes" in ran.said
    assert str(Path(world.kept("job.out")).parent) in ran.said
    if how == "gone":
        shutil.rmtree(world.repo_there)
        again = world.run("run_all.sh", "--from", "sync")
        assert again.code == 0, again.said


@pytest.mark.req("R54", "B27")
def test_a_full_disk_under_the_marks_is_in_the_report(site: Site) -> None:
    def act() -> None:
        (site.mount(scripts_log(site), "size=4k") / "full").write_bytes(bytes(4096))

    ran = run_into(site, act, command="true")
    assert ran.code == 1, ran.said
    assert "it could not note its end: see whether its disk is full (df -h, quota)" in ran.said
    assert "task.sh: cannot write" in "".join(site.world.report()["excerpt"]["err"])


@pytest.mark.req("R54", "B27")
def test_a_full_disk_under_the_log_is_no_success(site: Site) -> None:
    small = site.mount(site.world.root / "small", "size=60k")
    ran = run_into(site, lambda: None, command="seq 1 100000", remote_work_dir=str(small))
    assert ran.code == 1, ran.said
    assert "it could not note its end: see whether its disk is full (df -h, quota)" in ran.said


@pytest.mark.req("R27", "B27")
def test_a_full_disk_under_the_build_is_a_failed_build(site: Site) -> None:
    world = site.world
    small = site.mount(world.root / "small", "size=60k")
    world.bundle(build_project=True, build_command="seq 1 100000", remote_work_dir=str(small))
    ran = world.run("run_all.sh")
    assert ran.code == 6, ran.said
    assert world.report()["status"] == "BUILD_FAILED"
    assert "see whether its disk is full (df -h, quota)" in world.report()["advice"]
    assert world.jobs_submitted() == [world.kept("build.id")]
