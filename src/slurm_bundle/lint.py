"""Turns a bundle into findings: what shellcheck, bash -n and shfmt have to say of its scripts."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

# The user's own text is looked at, too, but what is found there is a note and no fault of the bundle.
USER_TEXT = ("command.sh", "build_command.sh", "login/init.sh")


@dataclass(frozen=True)
class Finding:
    """One remark on one line of a script; `note` where it is about the user's own text."""

    path: str
    line: int
    tool: str
    message: str
    note: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.tool}: {self.message}"

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def find_tool(name: str) -> str | None:
    """The tool that was installed with gen, else the one on the PATH."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def list_scripts(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (".sh", ".slurm") and ".run" not in path.relative_to(folder).parts
    )


def lint_bundle(folder: Path, *, user_files: frozenset[str] = frozenset()) -> tuple[list[Finding], list[str]]:
    """Check every script of a bundle. Gives the findings, and which tools were not there, or not able, to look."""
    names = [str(path.relative_to(folder)) for path in list_scripts(folder)]
    absent: list[str] = []
    found: list[Finding] = []
    own = user_files | frozenset(USER_TEXT) | batch_script(folder)
    # The user's own text may be formatted as it likes.
    for tool, check, looked_at in (
        ("bash", run_bash, names),
        ("shellcheck", run_shellcheck, names),
        ("shfmt", run_shfmt, [name for name in names if name not in own]),
    ):
        program = find_tool(tool)
        try:
            found += check(program or tool, folder, looked_at)
        except OSError:
            absent.append(tool)
    return [Finding(f.path, f.line, f.tool, f.message, note=f.path in own) for f in found], absent


def batch_script(folder: Path) -> frozenset[str]:
    """The user's own batch script, which the manifest knows; empty where there is none."""
    try:
        entries = json.loads((folder / "MANIFEST.json").read_text())["files"]
        return frozenset(e["path"] for e in entries if e["side"] == "user" and e["path"].startswith("recipes/"))
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def run_bash(program: str, folder: Path, names: list[str]) -> list[Finding]:
    """Only whether bash can read each script."""
    found = []
    for name in names:
        checked = subprocess.run([program, "-n", name], cwd=folder, capture_output=True, text=True, check=False)
        if checked.returncode != 0:
            found.append(Finding(name, 1, "bash -n", checked.stderr.strip().splitlines()[-1]))
    return found


def run_shellcheck(program: str, folder: Path, names: list[str]) -> list[Finding]:
    """With -x, so that what a script sources is known; style severity is everything that shellcheck can say.

    Raises OSError where it did not look: no output means no findings only when it says so by its exit code.
    """
    if not names:
        return []
    checked = subprocess.run(
        [program, "-S", "style", "-x", "-f", "json", *names], cwd=folder, capture_output=True, text=True, check=False
    )
    if checked.returncode > 1 or not checked.stdout:
        raise OSError(checked.stderr)
    remarks = json.loads(checked.stdout)
    return [
        Finding(r["file"].removeprefix("./"), r["line"], "shellcheck", f"SC{r['code']} {r['message']}") for r in remarks
    ]


def run_shfmt(program: str, folder: Path, names: list[str]) -> list[Finding]:
    """In the house format: four spaces, cases indented."""
    if not names:
        return []
    checked = subprocess.run(
        [program, "-i", "4", "-ci", "-l", *names], cwd=folder, capture_output=True, text=True, check=False
    )
    return [
        Finding(name, 1, "shfmt", "is not in the format of shfmt -i 4 -ci")
        for name in checked.stdout.split("\n")
        if name
    ]
