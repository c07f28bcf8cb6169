"""Turns rendered files into a folder, and loses nothing that was there: one verb a file, told before it is done."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from slurm_bundle.problems import BundleConflict, GenError

if TYPE_CHECKING:
    from slurm_bundle.render import BundleFile

# What a bundle keeps beside its files and gen leaves alone.
STATE = ".run"
OWN = ("MANIFEST.json", "SHA256SUMS")
# How the folder begins in which new files are written before they are put in their places.
NEW = ".gen-new-"


@dataclass(frozen=True)
class Change:
    """What happens to one file of the folder: create, update, unchanged, remove or conflict."""

    verb: str
    path: str


def read_manifests(folder: Path) -> Mapping[str, frozenset[str]]:
    """The files that gen wrote into a folder, with each sha256 that it gave them; empty where gen wrote nothing.

    A run that was killed leaves files of two bundles: that of the manifest, and that of the new files left over.
    """
    known: dict[str, frozenset[str]] = {}
    for place in (folder, *left_over(folder, NEW)):
        for path, sha256 in read_manifest(place).items():
            known[path] = known.get(path, frozenset()) | {sha256}
    return known


def left_over(folder: Path, prefix: str) -> list[Path]:
    """The folders of new files that runs have left which were killed."""
    found = [path for path in folder.glob("*") if path.name.startswith(prefix)]
    return [path for path in found if path.is_dir() and not path.is_symlink()]


def read_manifest(folder: Path) -> Mapping[str, str]:
    """The files of the manifest in a folder, with their sha256; empty where there is none."""
    try:
        entries = json.loads((folder / "MANIFEST.json").read_text())["files"]
        # A path that leads out of the folder is none that gen wrote: its file is not ours to remove.
        return {e["path"]: e["sha256"] for e in entries if not {"..", "/"} & set(PurePosixPath(e["path"]).parts)}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def digest(path: Path) -> str | None:
    """The sha256 of a plain file, None where there is none."""
    if path.is_symlink() or not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def plan_changes(files: Iterable[BundleFile], folder: Path) -> tuple[Change, ...]:
    """Compare files with what a folder holds. Nothing is written.

    A file is gen's own while it is as the manifest has it, or already as it shall be. Everything else in the place of
    a file to be written or removed is a conflict; in a folder without a manifest, everything is.
    """
    wanted = {file.path: file for file in files}
    if not folder.is_dir():
        return tuple(Change("create", path) for path in sorted(wanted))
    known = read_manifests(folder)
    changes = [compare(file, folder, known) for file in wanted.values()]
    for path, given in known.items():
        if path not in wanted and (folder / path).exists():
            changes.append(Change("remove" if digest(folder / path) in given else "conflict", path))
    if not known and folder.is_dir():
        there = [path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
        foreign = (path.as_posix() for path in there if path.parts[0] != STATE)
        changes += [Change("conflict", path) for path in foreign if path not in wanted]
        changes = [Change("conflict", c.path) if c.verb == "update" else c for c in changes]
    return tuple(sorted(changes, key=lambda change: change.path))


def compare(file: BundleFile, folder: Path, known: Mapping[str, frozenset[str]]) -> Change:
    path = folder / file.path
    if in_the_way(path, folder):
        return Change("conflict", file.path)
    if not path.exists() and not path.is_symlink():
        return Change("create", file.path)
    there = digest(path)
    if there == file.sha256:
        same_mode = (path.stat().st_mode & 0o777) == file.mode
        return Change("unchanged" if same_mode else "update", file.path)
    if there is not None and (file.path in OWN or there in known.get(file.path, ())):
        return Change("update", file.path)
    return Change("conflict", file.path)


def in_the_way(path: Path, folder: Path) -> Path | None:
    """What keeps a file from being put there: a folder in its place, a file or a link in the place of its folder."""
    for parent in path.parents:
        if parent == folder:
            break
        if parent.is_symlink() or parent.is_file():
            return parent
    return path if path.is_dir() and not path.is_symlink() else None


def write_bundle(files: Sequence[BundleFile], folder: Path, *, force: bool = False) -> tuple[Change, ...]:
    """Write the files into the folder, whole or not at all; files of an earlier spec go, those of the user stay.

    Raises BundleConflict, with nothing written, where that would overwrite what gen did not write; `force` does so.
    Raises GenError where the folder cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise GenError(f"{folder}: is a file; give a folder with -o")
    changes = plan_changes(files, folder)
    conflicts = [change.path for change in changes if change.verb == "conflict"]
    if conflicts and not force:
        names = ", ".join(conflicts[:10]) + (f" and {len(conflicts) - 10} more" if len(conflicts) > 10 else "")
        raise BundleConflict(
            map(Path, conflicts),
            f"{folder}: not written by gen, or edited since: {names}. Nothing was changed. "
            "Move them away, give another folder with -o, or overwrite them with --force",
        )
    in_conflict = (folder / file.path for file in files if file.path in conflicts)
    blocked = {str(found) for path in in_conflict if (found := in_the_way(path, folder))}
    if blocked:
        raise GenError(f"{', '.join(sorted(blocked))}: in the way, and --force overwrites files only; move it away")
    try:
        if folder.is_dir():
            replace_files(files, folder, changes)
        else:
            create_folder(files, folder)
    except OSError as error:
        raise GenError(f"{folder}: cannot be written: {error.strerror} ({error.filename})") from error
    return changes


def create_folder(files: Iterable[BundleFile], folder: Path) -> None:
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{folder.name}{NEW}"
    remove_folders(left_over(folder.absolute().parent, prefix))
    beside = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.absolute().parent))
    try:
        put_files(files, beside)
        beside.chmod(0o755)
        beside.rename(folder.absolute())
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def replace_files(files: Sequence[BundleFile], folder: Path, changes: Iterable[Change]) -> None:
    """Write all new files beside, then put each in its place, and take away those of an earlier spec.

    The manifest comes last: until then the one that is there knows of the old files, and the one beside of the new.
    """
    verbs = {change.path: change.verb for change in changes}
    old = left_over(folder, NEW)
    beside = Path(tempfile.mkdtemp(prefix=NEW, dir=folder))
    try:
        put_files(files, beside)
        written = {file.path for file in files}
        for path in [*sorted(written - set(OWN)), *OWN]:
            if path == OWN[0]:
                remove_files(folder, (path for path, verb in verbs.items() if verb == "remove" and path not in written))
            if path in written and verbs[path] != "unchanged":
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                (beside / path).replace(target)
        remove_folders(old)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def remove_files(folder: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (folder / path).unlink()
        remove_empty(folder, (folder / path).parent)


def remove_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def remove_empty(folder: Path, parent: Path) -> None:
    if parent != folder and not any(parent.iterdir()):
        parent.rmdir()


def put_files(files: Iterable[BundleFile], folder: Path) -> None:
    made = {folder}
    for file in files:
        path = folder / file.path
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        path.write_bytes(file.data)
        path.chmod(file.mode)


def require_bundle(folder: Path) -> None:
    """Raise GenError unless the folder holds a bundle."""
    if not (folder / "run_all.sh").is_file():
        raise GenError(
            f"{folder}: is no bundle, as it has no run_all.sh; make one with: gen bundle job_spec.json -o {folder}"
        )
