"""The batch scripts with a stand-in for srun: which marks are believed, and what the exit file says."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUNDLE = Path(__file__).parents[2] / "generated" / "minimal" / "bundle"
SCRIPTS = re.findall("^readonly SCRIPTS_DIR='~/(.*)'$", (BUNDLE / "config.sh").read_text(), re.MULTILINE)[0]
JOB = "77"


SRUN = """#!/bin/bash
marks=${@: -3:1}
start() { echo here >"$marks/0.start"; }
end() { echo "$1" >"$marks/0.end"; }
later() { echo "echo here >'$marks/0.start'; echo 0 >'$marks/0.end'" >"$HOME/later"; }
"""
SLEEP = """#!/bin/bash
[ "$1" != 3 ] || [ ! -e "$HOME/later" ] || . "$HOME/later"
"""


def run_job(tmp_path: Path, srun: str, *, marks_before: dict[str, str] | None = None) -> str:
    """Run job.slurm as Slurm would, but for srun and sleep, which are stand-ins. Gives what is in the exit file."""
    scripts = tmp_path / SCRIPTS
    scripts.mkdir(parents=True)
    for name, text in {"srun": f"{SRUN}{srun}\n", "sleep": SLEEP}.items():
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(text)
        command.chmod(0o755)
    for name, text in (marks_before or {}).items():
        mark = scripts / "log" / f"job.{JOB}" / name
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(text)
    env = {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SLURM_JOB_ID": JOB,
        "SLURM_JOB_NAME": "x",
        "SLURM_JOB_NUM_NODES": "1",
    }
    done = subprocess.run(["bash", BUNDLE / "recipes" / "job.slurm"], env=env, capture_output=True, check=False)
    told: str = (scripts / "log" / f"job.{JOB}.exit").read_text().strip()
    assert told.split()[0] == str(done.returncode)
    return told


@pytest.mark.req("B27")
@pytest.mark.parametrize(
    ("srun", "told"),
    [
        ("exit 0", "1 unproven task 0 of 1 never started"),
        ("start", "1 unproven task 0 of 1 was stopped before its end"),
        ('start; >"$marks/0.end"', "1 unproven task 0 of 1 was stopped before its end"),
        ('start; printf 0 >"$marks/0.end"', "1 unproven task 0 of 1 was stopped before its end"),
        ("start; end 5", "1 unproven task 0 of 1 ended with exit code 5"),
        ("start; end 5; exit 5", "5 unproven task 0 of 1 ended with exit code 5"),
        ("start; end 0", "0 proven"),
        ("start; end 0; exit 1", "1 proven"),
        ("later", "0 proven"),
    ],
)
def test_the_exit_file_tells_what_the_marks_prove(tmp_path: Path, srun: str, told: str) -> None:
    assert run_job(tmp_path, srun) == told


@pytest.mark.req("B27")
def test_marks_of_an_earlier_start_of_the_job_prove_nothing(tmp_path: Path) -> None:
    told = run_job(tmp_path, "exit 0", marks_before={"0.start": "here\n", "0.end": "0\n"})
    assert told == "1 unproven task 0 of 1 never started"


@pytest.mark.req("B27")
@pytest.mark.parametrize(
    ("repo", "marks", "command", "code", "said"),
    [
        (".", ".", "exit 0", 0, ""),
        (".", ".", "exit 3", 3, ""),
        ("gone", ".", "exit 0", 1, "cannot enter gone on n1; is it on a file system that the nodes have?"),
        (".", "gone", "exit 0", 1, "cannot write gone/0.start; is there room?"),
        (".", "late", "chmod 500 late 2>/dev/null; rm -r late", 1, "cannot write late/0.end; is there room?"),
    ],
)
def test_a_task_that_cannot_leave_its_mark_is_no_success(
    tmp_path: Path, repo: str, marks: str, command: str, code: int, said: str
) -> None:
    shutil.copy(BUNDLE / "task.sh", tmp_path)
    (tmp_path / "command.sh").write_text(f"{command}\n")
    (tmp_path / "late").mkdir()
    env = {"PATH": os.environ["PATH"], "SLURM_PROCID": "0", "SLURMD_NODENAME": "n1"}
    done = subprocess.run(
        ["sh", "task.sh", marks, repo, "command.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert said in done.stderr
