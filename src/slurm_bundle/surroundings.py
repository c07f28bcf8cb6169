"""Turns a spec into what this machine knows of it: the repository, its origin, the user, the batch script."""

import getpass
import subprocess
from pathlib import Path

from slurm_bundle.problems import Problem, SpecError, place_of
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import ReadSpec


def look_around(read: ReadSpec) -> Surroundings:
    """Ask git and the file system; nothing here is an error yet, what is not there is None."""
    root = (read.folder / Path(read.spec.repo_root).expanduser()) if read.spec.repo_root else None
    root = root.resolve() if root is not None else None
    script = read.spec.script_path
    origin, said = None, ""
    if root is not None and read.spec.repo_url is None:
        origin, said = ask_git(root, "remote", "get-url", "origin")
    return Surroundings(
        user=getpass.getuser(),
        repo_root=root,
        origin_url=origin,
        git_says=said,
        batch_script=read_script(read.folder / Path(script).expanduser()) if script else None,
    )


def ask_git(folder: Path, *arguments: str) -> tuple[str | None, str]:
    """Give what git prints, None where it fails or is not installed; and the reason that it gives then."""
    try:
        asked = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    reasons = [line for line in asked.stderr.splitlines() if line.startswith(("fatal:", "error:"))]
    return (asked.stdout.strip() or None, "") if asked.returncode == 0 else (None, reasons[0] if reasons else "")


def read_script(path: Path) -> str | None:
    """Give the script with every byte that it has, its line ends among them."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def require_files(read: ReadSpec, surroundings: Surroundings) -> None:
    """Raise SpecError where a file of the bundle cannot be read here, or is no script that sbatch would take."""
    if read.spec.script_path:
        wrong = object_to_script(surroundings.batch_script)
        if wrong:
            place = place_of(read.name, "script_path", read.lines)
            raise SpecError([Problem(place, f"{read.spec.script_path!r} {wrong}")])


def object_to_script(script: str | None) -> str | None:
    """Say what sbatch would have against a batch script (tried with 22.05), None for nothing."""
    if script is None:
        return "cannot be read here as UTF-8; the bundle holds it: make the bundle where it is"
    if not script.startswith("#!"):
        return "does not begin with #! and an interpreter, which sbatch asks for; write #!/bin/bash into its first line"
    if "\r\n" in script:
        return "has the line ends of DOS, which sbatch refuses; take them out with: sed -i 's/\\r$//'"
    if "\0" in script:
        return "has a NUL character, which Slurm refuses; take it out"
    return None


def missing_here(read: ReadSpec, surroundings: Surroundings) -> tuple[Problem, ...]:
    """Say what a run will need and this machine does not have: no error, as the bundle may run elsewhere."""
    found = []
    root = surroundings.repo_root
    if root is not None and not surroundings.origin_url and ask_git(root, "rev-parse", "--git-dir")[0] is None:
        found.append(
            (
                "repo_root",
                f"{root} is no git repository here; the bundle has to run on the machine that has it",
            )
        )
    if read.spec.script_path and surroundings.batch_script is None:
        found.append(("script_path", f"{read.spec.script_path} is not here; gen bundle needs it"))
    for file in (*(read.spec.extra_files or ()), *([read.spec.custom_script] if read.spec.custom_script else [])):
        if not (read.folder / Path(file).expanduser()).exists():
            found.append(("extra_files", f"{file} is not here; sync.sh will need it"))
    return tuple(Problem(place_of(read.name, field, read.lines), message) for field, message in found)
