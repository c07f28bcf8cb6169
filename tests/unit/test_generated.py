"""The bundles in generated/ are what the templates make of their specs: bytes, modes, and the set of files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDENS = sorted(path.parent for path in (ROOT / "generated").glob("*/spec.json"))


def read_tree(folder: Path, *, from_git: bool) -> dict[str, tuple[bytes, int]]:
    """Bytes and mode of each file. Of a mode git keeps one bit, and the umask of whoever cloned does the rest."""
    tree = {}
    for path in folder.rglob("*"):
        if not path.is_dir() and ".run" not in path.parts:
            mode = path.stat().st_mode & 0o777
            kept = 0o755 if mode & 0o100 else 0o644
            tree[str(path.relative_to(folder))] = (path.read_bytes(), kept if from_git else mode)
    return tree


def make_bundle(spec: Path, out: Path) -> None:
    """As scripts/regenerate does: without a catalog of the person who runs it."""
    gen = Path(sys.executable).parent / "gen"
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([gen, "bundle", spec, "-o", out], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_goldens() -> None:
    assert [golden.name for golden in GOLDENS] == ["awkward-names", "batch", "minimal", "trtllm-2x8"]


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
@pytest.mark.req("R58", "B6")
def test_a_golden_is_what_gen_makes_of_its_spec_today(golden: Path, tmp_path: Path) -> None:
    make_bundle(golden / "spec.json", tmp_path / "bundle")
    made, kept = read_tree(tmp_path / "bundle", from_git=False), read_tree(golden / "bundle", from_git=True)
    assert sorted(made) == sorted(kept), "run scripts/regenerate"
    changed = [name for name in made if made[name] != kept[name]]
    assert changed == [], "run scripts/regenerate and look at git diff"


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_the_checksums_of_a_golden_are_right(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "bundle", tmp_path / "bundle")
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    checked = subprocess.run(command, cwd=tmp_path / "bundle", capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout
