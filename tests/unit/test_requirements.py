"""The rules for all tests, of tests/conftest.py: markers name real requirements, nothing is skipped in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import read_requirements

ROOT = Path(__file__).parents[2]


def run_pytest(folder: Path, text: str, *options: str, ci: str = "") -> "subprocess.CompletedProcess[str]":
    """Run pytest with this project's conftest over one file that holds the text."""
    (folder / "test_it.py").write_text(f"import pytest\n{text}")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    req\n    cluster\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-q", *options, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_marker_that_names_no_requirement_is_an_error(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, '@pytest.mark.req("R17", "R999")\ndef test_a(): pass\n')
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "markers name requirements that are not in requirements.toml: ['R999']" in ran.stderr


def test_the_table_has_a_row_for_each_requirement_with_its_tests(tmp_path: Path) -> None:
    text = '@pytest.mark.req("R17")\n@pytest.mark.parametrize("x", [1, 2])\ndef test_a(x): pass\n'
    text += '@pytest.mark.cluster\n@pytest.mark.req("R17", "B1")\ndef test_b(): pass\n'
    ran = run_pytest(tmp_path, text, "--collect-only", "--requirements")
    lines = ran.stdout.splitlines()
    row = lines.index(f"R17  {read_requirements()['R17']}")
    assert lines[row + 1 : row + 3] == ["             test_it.py::test_a", "     cluster test_it.py::test_b"]
    assert lines[lines.index(f"R18  {read_requirements()['R18']}") + 1] == "     -"
    assert [line.split()[0] for line in lines if line.startswith(("R", "B"))] == list(read_requirements())


def test_a_skipped_test_fails_a_run_in_ci_and_is_named(tmp_path: Path) -> None:
    text = "def test_a(): pytest.skip('no time')\ndef test_b(): pass\n"
    assert run_pytest(tmp_path, text).returncode == pytest.ExitCode.OK
    ran = run_pytest(tmp_path, text, ci="true")
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert "skipped, which with CI=true is a failure: test_it.py::test_a" in ran.stdout


def test_a_file_that_is_skipped_whole_counts_as_well(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "pytest.skip('not here', allow_module_level=True)\n", ci="true")
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
