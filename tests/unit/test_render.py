"""Rendering many plans in one process: what is kept from one bundle is right in the next."""

from pathlib import Path

import pytest

from slurm_bundle.catalog import Catalog
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.render import render_bundle
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import read_spec

GOLDENS = sorted(path.parent for path in (Path(__file__).parents[2] / "generated").glob("*/spec.json"))


def make_plan(golden: Path, **changes: object) -> Plan:
    read = read_spec(golden / "spec.json", overrides=changes)
    script = read.spec.script_path
    here = Surroundings(
        user="me",
        repo_root=Path(read.spec.repo_root or ""),
        origin_url=None,
        batch_script=(golden / script).read_text() if script else None,
    )
    return resolve_plan(read, Catalog(), here)


@pytest.mark.req("B6")
def test_bundles_of_different_plans_made_in_one_process_are_those_that_are_made_alone() -> None:
    for golden in (*GOLDENS, *reversed(GOLDENS)):
        files = {file.path: file.data for file in render_bundle(make_plan(golden))}
        kept = [path for path in (golden / "bundle").rglob("*") if path.is_file() and ".run" not in path.parts]
        assert files == {str(path.relative_to(golden / "bundle")): path.read_bytes() for path in kept}


@pytest.mark.req("B6")
def test_a_script_without_values_is_rendered_once_for_all_plans_with_its_features() -> None:
    golden = GOLDENS[2]
    one, two = (
        {file.path: file for file in render_bundle(make_plan(golden, account=account))} for account in ("a", "b")
    )
    assert {path for path in one if one[path] is not two[path]} == {
        *("config.sh", "recipes/job.slurm", "command.sh", "README.md", "MANIFEST.json", "SHA256SUMS"),
    }
