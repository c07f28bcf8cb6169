"""What the README shows is what gen takes."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from slurm_bundle.catalog import load_catalog
from slurm_bundle.fields import Spec
from slurm_bundle.plan import resolve_plan
from slurm_bundle.render import render_bundle
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import read_spec

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_spec_of_the_tour_is_a_whole_one_and_its_bundle_is_as_described(tmp_path: Path) -> None:
    (tmp_path / "job_spec.json").write_text(blocks("json")[0])
    here = Surroundings(user="me", repo_root=Path("/src/engine"), origin_url="git@git.example.org:me/engine.git")
    made = resolve_plan(read_spec(tmp_path / "job_spec.json"), load_catalog(None, explicit=False), here)
    drawing = README.partition("## A bundle")[2].split("```")[1]
    described = set(re.findall(r"\b(\w+\.(?:sh|md|json)|SHA256SUMS)\b", drawing))
    built = {"submit_build.sh", "build.sh", "report.json"}
    assert described - built <= {Path(file.path).name for file in render_bundle(made)}


def test_the_program_of_the_tour_makes_its_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {**json.loads(blocks("json")[0]), "repo_url": "git@git.example.org:me/engine.git"}
    (tmp_path / "job_spec.json").write_text(json.dumps(spec))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    exec(blocks("python")[0])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["out/1e-3", "out/1e-4"]
    assert "train.py --rate 1e-4\n" in (tmp_path / "out" / "1e-4" / "command.sh").read_text()


def test_the_catalog_of_the_tour_is_read(tmp_path: Path) -> None:
    (tmp_path / "clusters.toml").write_text(blocks("toml")[0])
    tomllib.loads(blocks("toml")[0])
    assert list(load_catalog(tmp_path / "clusters.toml", explicit=True).clusters) == ["aurora"]


@pytest.mark.req("B15")
def test_every_field_of_the_table_is_one() -> None:
    table = README.partition("| field | meaning |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named
    assert named <= set(Spec.model_fields)
