"""Odd login nodes: start-up files that talk, read, walk off or leave; another home; old or slow programs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import World

pytestmark = pytest.mark.cluster

Bashrc = Callable[[str], None]


@pytest.fixture
def bashrc(world: World) -> Iterator[Bashrc]:
    """Sets the .bashrc of the user of the cluster, which bash reads for every command that comes by ssh."""
    path = Path(world.cluster["GEN_USER_HOME"]) / ".bashrc"
    before = path.read_text() if path.exists() else None

    def write(text: str) -> None:
        # Origin is reached as the same user, and no git could live with what stands below.
        path.write_text(f"case $BASH_EXECUTION_STRING in *git-*) return ;; esac\n{text}")

    yield write
    if before is None:
        path.unlink()
    else:
        path.write_text(before)


@pytest.mark.req("B16")
def test_a_start_up_file_that_talks_reads_and_walks_off_is_no_matter(world: World, bashrc: Bashrc) -> None:
    home = world.root / "a home"
    home.mkdir()
    home.chmod(0o777)
    bashrc(
        "echo Welcome to Stampede3; echo 12; echo Submitted batch job 99 >&2; printf 'no newline @@gen job=7'\n"
        f"read -r -t 2 line; export HOME='{home}'; cd /usr; stty -echo\nset -o noclobber; umask 077; alias cat=false\n"
    )
    world.bundle(remote_cwd="~", default_user_root_dir=None, build_project=True, build_command="echo built")
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert (home / "engine" / ".git").is_dir()
    assert world.run("cleanup.sh").code == 0
