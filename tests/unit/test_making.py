"""Many bundles of one spec, made by a program."""

import json
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle import surroundings
from slurm_bundle.making import make_bundles
from slurm_bundle.problems import BundleConflict, SpecError
from tests.project import git
from tests.unit.test_cli import SPEC, gen


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec that leaves the URL of origin to git."""
    git(tmp_path, "init", "--quiet", "engine")
    git(tmp_path / "engine", "remote", "add", "origin", "git@git.example.org:a/engine.git")
    values: dict[str, Any] = {**SPEC, "repo_root": "engine"}
    del values["repo_url"]
    (tmp_path / "job_spec.json").write_text(json.dumps(values))
    return tmp_path / "job_spec.json"


def read_tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode) for path in files}


@pytest.mark.req("R58")
def test_each_is_the_bundle_that_gen_makes_with_these_fields(spec: Path) -> None:
    wanted = {spec.parent / "two" / rate: {"command": f"train --rate {rate}"} for rate in ("a", "b")}
    made = list(make_bundles(spec, wanted))
    assert [one.folder for one in made] == list(wanted)
    assert {change.verb for one in made for change in one.changes} == {"create"}
    assert len({one.plan["bundle_id"] for one in made}) == 2
    for one in made:
        told = gen(spec.parent, "bundle", str(spec), "-o", "alone", "--set", f"command={one.plan['command']}")
        assert told.returncode == 0, told.stderr
        assert read_tree(one.folder) == read_tree(spec.parent / "alone")


def test_git_is_asked_once_for_all_of_one_repository(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    ask_git = surroundings.ask_git

    def count(folder: Path, *arguments: str) -> tuple[str | None, str]:
        asked.append(folder)
        return ask_git(folder, *arguments)

    monkeypatch.setattr(surroundings, "ask_git", count)
    other = {"repo_root": str(spec.parent)}
    changes = {"a": {}, "b": {"account": "other"}, "c": {"repo_url": "ssh://git@git.example.org/c.git"}, "d": {}}
    made = make_bundles(spec, {spec.parent / name: fields for name, fields in changes.items()})
    assert len({one.plan["repo_url"] for one in made}) == 2
    assert asked == [spec.parent / "engine"]
    with pytest.raises(SpecError, match="repo_url: missing"):
        list(make_bundles(spec, {spec.parent / "e": other}))


def test_a_bundle_that_cannot_be_made_stops_it_and_those_before_are_there(spec: Path) -> None:
    folders = [spec.parent / name for name in "abc"]
    folders[1].mkdir()
    (folders[1] / "mine.txt").write_text("mine")
    with pytest.raises(BundleConflict, match=r"mine\.txt"):
        list(make_bundles(spec, {folder: {} for folder in folders}))
    assert [folder.exists() for folder in folders] == [True, True, False]
    assert [path.name for path in folders[1].iterdir()] == ["mine.txt"]
