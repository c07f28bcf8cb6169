"""Linting: what the linters find, what is the user's own, and what happens where there are no linters."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_bundle import lint
from slurm_bundle.lint import lint_bundle

ROOT = Path(__file__).parents[2]
MINIMAL = ROOT / "generated" / "minimal" / "bundle"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    shutil.copytree(MINIMAL, tmp_path / "out")
    return tmp_path / "out"


def run_lint(out: Path, *options: str, path: Path | str) -> "subprocess.CompletedProcess[str]":
    gen = Path(sys.executable).parent / "gen"
    env = {"PATH": str(path), "HOME": str(out.parent)}
    return subprocess.run([gen, "lint", out, *options], env=env, capture_output=True, text=True, check=False)


@pytest.mark.req("R59")
def test_the_linters_that_were_installed_with_gen_are_used_without_any_on_the_path(out: Path) -> None:
    # GEN-14
    with (out / "sync.sh").open("a") as script:
        script.write("echo $oops\n")
    ran = run_lint(out, path="/nonexistent")
    assert ran.returncode == 1
    assert "sync.sh" in ran.stdout
    assert "SC2086" in ran.stdout
    assert ran.stderr == "gen: bash is not installed here, or cannot run; it did not look\n"


@pytest.mark.parametrize("broken", ["absent", "no program", "refuses"])
def test_a_linter_that_is_not_there_or_cannot_run_is_a_warning_and_no_finding(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    # GEN-14
    tool = tmp_path / "shellcheck"
    tool.write_text("no program\n" if broken == "no program" else "#!/bin/sh\necho 'bad option' >&2\nexit 4\n")
    tool.chmod(0o755)
    find = lint.find_tool
    found = None if broken == "absent" else str(tool)
    monkeypatch.setattr(lint, "find_tool", lambda name: found if name == "shellcheck" else find(name))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    findings, absent = lint_bundle(out)
    assert findings == []
    assert absent == ["shellcheck"]


def test_what_is_missing_is_told_to_programs_too(out: Path) -> None:
    # GEN-14
    ran = run_lint(out, "--json", path="/nonexistent")
    assert (ran.returncode, json.loads(ran.stdout)) == (0, {"findings": [], "not_installed": ["bash"]})


@pytest.mark.parametrize("text", ["echo $x\n", "cd /x; ls | grep a\nfor i in $(ls); do rm $i; done\n"])
def test_the_users_own_text_is_looked_at_apart_and_stops_nothing(out: Path, text: str) -> None:
    # GEN-14
    with (out / "command.sh").open("a") as script:
        script.write(text)
    findings, _ = lint_bundle(out)
    assert findings
    assert {(finding.path, finding.note) for finding in findings} == {("command.sh", True)}
    assert run_lint(out, path=os.environ["PATH"]).returncode == 0
