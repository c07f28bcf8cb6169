"""The bundles in generated/ are what the templates make of their specs: bytes, modes, and the set of files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDENS = sorted(path.parent for path in (ROOT / "generated").glob("*/spec.json"))


def read_tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file() and ".run" not in path.parts
    }


def make_bundle(spec: Path, out: Path) -> None:
    gen = Path(sys.executable).parent / "gen"
    done = subprocess.run([gen, "bundle", spec, "-o", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_goldens() -> None:
    assert [golden.name for golden in GOLDENS] == ["awkward-names", "batch", "minimal", "trtllm-2x8"]


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
@pytest.mark.req("R58", "B6")
def test_a_golden_is_what_gen_makes_of_its_spec_today(golden: Path, tmp_path: Path) -> None:
    make_bundle(golden / "spec.json", tmp_path / "bundle")
    made, kept = read_tree(tmp_path / "bundle"), read_tree(golden / "bundle")
    assert sorted(made) == sorted(kept), "run scripts/regenerate"
    changed = [name for name in made if made[name] != kept[name]]
    assert changed == [], "run scripts/regenerate and look at git diff"


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_the_checksums_of_a_golden_are_right(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "bundle", tmp_path / "bundle")
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    checked = subprocess.run(command, cwd=tmp_path / "bundle", capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout
