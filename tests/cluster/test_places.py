"""Where things lie: a home folder behind a link, a bundle that was moved, is read-only, or called by another path."""

import pytest

from tests.cluster.conftest import World

pytestmark = pytest.mark.cluster


def test_a_home_folder_behind_a_link_is_found_in_a_container_that_sees_only_the_link(world: World) -> None:
    # GEN-11: /home is mounted, as sites do, and /home/alice is a link to a file system that is not.
    real, home = world.root / "gpfs" / "u" / "alice", world.root / "home"
    for folder in (real / "runs", home):
        folder.mkdir(parents=True)
    (home / "alice").symlink_to(real)
    world.slurm("chown", "-R", f"{world.cluster['GEN_USER']}:", str(world.root))
    world.bundle(
        remote_cwd=f"{home}/alice/runs",
        default_user_root_dir=f"{home}/alice/runs",
        container_image="registry.example.org/tensorrt-llm/devel:1.0",
        mounts=[f"{home}:{home}"],
        build_project=True,
        build_command="touch built",
        command='pwd; ls "$PWD/built" && echo "$WORK_DIR" && echo all passed >"$WORK_DIR/result"',
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    repo = real / "runs" / "engine"
    work = repo / "work_dirs" / "llm_research.engine"
    assert world.report()["excerpt"]["out"][-3:] == [str(repo), f"{repo}/built", str(work)]
    assert (work / "result").read_text() == "all passed\n"
