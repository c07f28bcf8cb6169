"""Sync: nothing of the user's is touched, nothing is left on origin, however it ends."""

import os
import signal
import subprocess

import pytest

from tests.cluster.conftest import World, wait_for
from tests.cluster.test_main_job import work_there
from tests.project import git, photograph

pytestmark = pytest.mark.cluster


def hook(world: World, name: str, text: str) -> None:
    path = world.origin / "hooks" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.req("R18", "R19")
def test_with_much_to_send_it_is_still_the_cluster_that_says_what_went_wrong(world: World) -> None:
    (world.repo / "large.bin").write_bytes(os.urandom(5_000_000))
    world.bundle(repo_url=f"{world.cluster['GEN_ORIGIN_URL']}/no-such-place/engine.git")
    ran = world.run("sync.sh")
    assert ran.code == 5
    assert "cannot clone" in ran.said
    assert "tar could not read" not in ran.said


@pytest.mark.req("R19", "B1")
def test_killed_in_the_middle_it_has_touched_nothing_and_the_next_run_tidies_up(world: World) -> None:
    hook(world, "post-receive", "sleep 2")
    world.bundle()
    before = photograph(world.repo)
    running = world.start("sync.sh")
    wait_for(lambda: len(world.branches_on_origin()) > 1)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert photograph(world.repo) == before
    assert len(world.branches_on_origin()) == 2
    hook(world, "post-receive", "true")
    ran = world.run("sync.sh")
    assert ran.code == 0, ran.said
    assert world.branches_on_origin() == ["main"]
    assert photograph(world.repo) == before


@pytest.mark.req("R19")
def test_interrupted_in_the_middle_it_takes_the_branch_off_origin(world: World) -> None:
    hook(world, "post-receive", "sleep 2")
    world.bundle()
    running = world.start("sync.sh")
    wait_for(lambda: len(world.branches_on_origin()) > 1)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert world.branches_on_origin() == ["main"]


@pytest.mark.req("R13", "R17")
def test_what_was_left_in_the_clone_is_stashed_and_refresh_paths_are_as_in_the_snapshot(world: World) -> None:
    world.bundle()
    assert world.run("sync.sh").code == 0
    there = world.repo_there
    (there / "engine" / "layer_1" / "module_020.py").write_text("edited on the cluster\n")
    (there / "left over.txt").write_text("left over\n")
    (there / "cpp" / "build").mkdir()
    (there / "cpp" / "build" / "stale.o").write_text("stale\n")
    subprocess.run(["chown", "-R", f"{world.cluster['GEN_USER']}:", str(there)], check=True)
    (work_there(world) / "slurm-1.out").write_text("a log of an earlier run\n")
    ran = world.run("sync.sh")
    assert ran.code == 0, ran.said
    assert not (there / "left over.txt").exists()
    assert not (there / "cpp" / "build").exists()
    assert (work_there(world) / "slurm-1.out").exists()
    stash = git(there, "-c", "safe.directory=*", "stash", "list")
    assert "left over before a sync" in stash
    assert "left over" in git(there, "-c", "safe.directory=*", "show", "stash@{0}^3:left over.txt")
    assert "edited on the cluster" in git(
        there, "-c", "safe.directory=*", "show", "stash@{0}:engine/layer_1/module_020.py"
    )


@pytest.mark.req("R15", "R18")
def test_a_clean_repository_is_synced_too(world: World) -> None:
    git(world.repo, "reset", "--hard", "--quiet")
    git(world.repo, "clean", "-d", "--force", "--quiet")
    world.bundle()
    ran = world.run("sync.sh")
    assert ran.code == 0, ran.said
    assert "with 0 untracked files" in ran.said
    assert (
        git(world.repo_there, "-c", "safe.directory=*", "rev-parse", "HEAD^").strip()
        == git(world.repo, "rev-parse", "HEAD").strip()
    )


@pytest.mark.req("R20")
def test_extra_files_go_to_the_work_folder(world: World) -> None:
    extra = world.folder / "more data"
    extra.mkdir()
    (extra / "a b.bin").write_bytes(bytes(range(256)))
    world.bundle(extra_files=[str(extra), str(extra / "a b.bin")])
    ran = world.run("sync.sh")
    assert ran.code == 0, ran.said
    assert (work_there(world) / "more data" / "a b.bin").read_bytes() == bytes(range(256))
    assert (work_there(world) / "a b.bin").read_bytes() == bytes(range(256))


@pytest.mark.req("B1")
def test_hooks_signing_and_a_missing_name_do_not_matter(world: World) -> None:
    for name in ("pre-commit", "pre-push", "post-commit", "reference-transaction", "post-index-change"):
        path = world.repo / ".git" / "hooks" / name
        path.write_text(f"#!/bin/sh\ntouch {world.folder}/hook-ran\nexit 1\n")
        path.chmod(0o755)
    git(world.repo, "config", "commit.gpgSign", "true")
    git(world.repo, "config", "push.gpgSign", "true")
    git(world.repo, "config", "push.followTags", "true")
    (world.repo / ".git" / "index.lock").touch()
    world.bundle()
    before = photograph(world.repo)
    ran = world.run("sync.sh")
    assert ran.code == 0, ran.said
    assert not (world.folder / "hook-ran").exists()
    assert photograph(world.repo) == before


@pytest.mark.req("B1")
def test_an_untracked_file_that_cannot_be_read_stops_the_sync(world: World) -> None:
    secret = world.repo / "unreadable.txt"
    secret.write_text("x")
    world.bundle()
    user = world.cluster["GEN_CLIENT_USER"]
    subprocess.run(["chown", "-R", user, str(world.folder)], check=True)
    for folder in (world.folder, *world.folder.parents):
        if folder.is_relative_to("/tmp") and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    secret.chmod(0)
    subprocess.run(["chown", "root", str(secret)], check=True)
    before = photograph(world.repo)
    done = subprocess.run(
        [
            "runuser",
            "-u",
            user,
            "--",
            "env",
            f"PATH={world.env['PATH']}",
            f"HOME={world.folder}",
            str(world.out / "sync.sh"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "unreadable.txt" in done.stderr
    assert world.branches_on_origin() == ["main"]
    assert photograph(world.repo) == before
