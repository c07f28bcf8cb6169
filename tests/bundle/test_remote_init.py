"""remote_init is the user's own text, in one stream with the scripts for the login node: it may set up, and no more."""

import subprocess
from pathlib import Path

import pytest

from slurm_bundle.render import render_bundle
from tests.unit.test_plan import plan


def answer_with(remote_init: str, folder: Path) -> list[str]:
    """Run on the login node's side what a step sends, with a script that answers `done`; give the answers."""
    files = {file.path: file.text for file in render_bundle(plan(remote_init=remote_init))}
    sent = files["config.sh"] + files["login/lib.sh"] + files["login/init.sh"]
    sent += 'token=t\nreport done "$token ${MODULE-}"\n'
    ran = subprocess.run(["bash", "-s"], input=sent, cwd=folder, capture_output=True, text=True, check=False)
    return [line.removeprefix("@@gen ") for line in ran.stdout.splitlines() if line.startswith("@@gen ")]


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    "text",
    [
        "MODULE=slurm",
        "MODULE=slurm # a comment",
        "MODULE=slurm \\",
        "MODULE=slurm\\",
        "MODULE=slurm; read -r token; cat",
        "MODULE=slurm; false; : $UNSET",
    ],
)
def test_what_follows_remote_init_runs_as_it_is(text: str, tmp_path: Path) -> None:
    assert answer_with(text, tmp_path) == ["done=t slurm", "end=0."]


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    "text", ["exit 0", "exit", "set -e; false", "cat <<EOF", "echo 'open", 'echo "', "if true", "$("]
)
def test_remote_init_that_ends_the_shell_or_is_not_whole_is_told_as_such(text: str, tmp_path: Path) -> None:
    error, end = answer_with(text, tmp_path)
    assert error == "error=remote_init has ended the shell, or has a quote or a here-document that is not closed"
    assert end == "end=1."
