"""What this machine knows of a spec: here, the user's own batch script."""

from pathlib import Path

import pytest

from slurm_bundle.problems import SpecError
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import check_values
from slurm_bundle.surroundings import look_around, require_files


def look(folder: Path, script: bytes | None) -> Surroundings:
    if script is not None:
        (folder / "it's my.job").write_bytes(script)
    read = check_values({"script_path": "it's my.job"}, folder=folder)
    here = look_around(read)
    require_files(read, here)
    return here


@pytest.mark.req("R34")
@pytest.mark.parametrize("body", ["a\rb\n", "\u2028 é 🙂\n", "no end", "\n\n\t\n", "{{ 1 }} `x` $(y)\n", "\ufeff\n"])
def test_the_batch_script_is_taken_with_every_byte_that_it_has(tmp_path: Path, body: str) -> None:
    script = f"#!/bin/bash\n{body}"
    assert look(tmp_path, script.encode()).batch_script == script


@pytest.mark.req("R34")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "cannot be read here"),
        (b"#!/bin/bash\n\xff\n", "cannot be read here"),
        (b"", "does not begin with #!"),
        (b"\n#!/bin/bash\n", "does not begin with #!"),
        (b"#!/bin/bash\r\ntrue\r\n", "has the line ends of DOS"),
        (b"#!/bin/bash\n\0\n", "has a NUL character"),
    ],
)
def test_a_batch_script_that_sbatch_would_refuse_is_refused_here(
    tmp_path: Path, script: bytes | None, said: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        look(tmp_path, script)
    assert str(refusal.value).startswith(f'job_spec.json: script_path: "it\'s my.job" {said}')
    assert "; " in str(refusal.value)
