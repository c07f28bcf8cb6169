"""Turns specs into bundles in one process, for programs: what `gen bundle` does, for one or for many.

rates = {Path(f"out/{rate}"): {"command": f"python3 train.py --rate {rate}"} for rate in ("1e-3", "1e-4")}
for made in make_bundles(Path("job_spec.json"), rates):
    print(made.folder, made.plan["bundle_id"])
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from slurm_bundle.bundle import Change, write_bundle
from slurm_bundle.catalog import find_catalog
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.render import render_bundle
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import read_spec
from slurm_bundle.surroundings import look_around, require_files


@dataclass(frozen=True)
class Made:
    """A bundle that was written: its folder, the plan behind it, and what happened to each file."""

    folder: Path
    plan: Plan
    changes: tuple[Change, ...]


def make_bundles(
    spec: Path, wanted: Mapping[Path, Mapping[str, object]], *, catalog: Path | None = None, force: bool = False
) -> Iterator[Made]:
    """Make a bundle in each folder, of one spec with the fields that stand beside the folder in place of its own.

    Each bundle is written when it is asked for, whole or not at all. What is the same for all is done once: the
    catalog, git, the templates, the scripts without values. Raises what `gen bundle` tells: GenError and below it
    SpecError, CatalogError, BundleConflict; the bundles before are there then.
    """
    known = find_catalog(catalog)
    seen: dict[tuple[str | None, ...], Surroundings] = {}
    for folder, fields in wanted.items():
        read = read_spec(spec, overrides=fields)
        looked_at = (read.spec.repo_root, read.spec.repo_url, read.spec.script_path)
        here = seen.get(looked_at) or seen.setdefault(looked_at, look_around(read))
        plan = resolve_plan(read, known, here)
        require_files(read, here)
        yield Made(folder, plan, write_bundle(render_bundle(plan), folder, force=force))
