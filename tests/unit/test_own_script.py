"""The directives of the user's own batch script that a bundle could not watch are refused by name."""

from dataclasses import replace

import pytest

from slurm_bundle.catalog import load_catalog
from slurm_bundle.plan import resolve_plan
from slurm_bundle.problems import SpecError
from slurm_bundle.spec import check_values
from tests.unit.test_plan import BASE, HERE


def refusals(script: str) -> list[str]:
    """What is said of a spec with this batch script."""
    values = {name: value for name, value in BASE.items() if name != "command"} | {"script_path": "own.slurm"}
    try:
        resolve_plan(
            check_values(values),
            load_catalog(None, explicit=False),
            replace(HERE, batch_script=f"#!/bin/bash\n{script}"),
        )
    except SpecError as error:
        return [f"{problem}" for problem in error.problems]
    return []


@pytest.mark.req("R34", "R25")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("#SBATCH --array=1-3", "one bundle watches one job"),
        ("#SBATCH --arr=1-3", "one bundle watches one job"),
        ("#SBATCH -a 1-3", "one bundle watches one job"),
        ("#SBATCH --clusters=gamma", "the job id would name a job of another cluster"),
        ("#SBATCH -N 1 -M gamma", "the job id would name a job of another cluster"),
        ("#SBATCH -Mgamma", "the job id would name a job of another cluster"),
        ("#SBATCH --chdir=/x", "the work directory is remote_work_dir"),
        ("#SBATCH -D /x", "the work directory is remote_work_dir"),
        ("#SBATCH --wait", "monitor.sh waits"),
        ("#SBATCH -W", "monitor.sh waits"),
        ("#SBATCH --test-only", "it submits nothing"),
    ],
)
def test_a_directive_that_makes_another_job_of_it_is_refused(line: str, reason: str) -> None:
    found = refusals(f"{line}\necho\n")
    assert len(found) == 1
    assert "script_path" in found[0]
    assert f"is not allowed: {reason}; take it out" in found[0]


@pytest.mark.parametrize(
    "script",
    [
        "#SBATCH --account=a --constraint=M\n#SBATCH -N 2 -A me -C a\n#SBATCH --mail-type=ALL\necho\n",
        "# --array=1-3\n##SBATCH --array=1-3\necho\n",
        "echo\n#SBATCH --array=1-3\n",
    ],
    ids=["others", "a comment", "after the first command"],
)
def test_nothing_else_is(script: str) -> None:
    assert refusals(script) == []
