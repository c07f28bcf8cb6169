"""A copy of a bundle to rehearse: the same bytes, but for the paths on the cluster, which lie in the rehearsal.

A rehearsal has no root, so /lustre/users/me cannot be made; PLACE/cluster/lustre/users/me can. Only lines that hold
nothing but values are touched: those of config.sh, `readonly NAME='/...'` and the like, and #SBATCH lines of the
scripts for the nodes. A path that begins with ~ is at home there, and stays. Where the repository or a file to send is
not on this machine, one of the rehearsal takes its place.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_bundle.rehearsal.contents import Contents

LOCAL = ("REPO_ROOT", "REPO_URL", "EXTRA_FILES", "CUSTOM_SCRIPT")  # not on the file system of the cluster
ASSIGNMENT = re.compile(
    r"^(?P<start>(?:(?:readonly|export) (?P<name>[A-Z_]+)|SCRIPTS_DIR|REPO_DIR)=\$?')(?=/)", re.MULTILINE
)
DIRECTIVE = re.compile(r'^(?P<start>#SBATCH --(?:output|error|input|chdir)="?)(?=/)', re.MULTILINE)
MOUNTS = re.compile(r"^readonly [A-Z_]*MOUNTS=(?P<list>.*)$", re.MULTILINE)
SOURCE = re.compile(r"(?P<start>(?:^|,)\$?')(?=/)")


@dataclass(frozen=True)
class Moved:
    """A line of the copy that is not that of the bundle."""

    path: str
    before: str
    after: str


def copy_bundle(contents: Contents, target: Path, cluster: Path, repository: Path, files: Path) -> tuple[Moved, ...]:
    """Copy the bundle to `target`, and give the lines that differ.

    `cluster` is the root of the practice cluster's file system, `repository` the one to take where there is none,
    `files` a folder for made-up files to send.
    """
    shutil.copytree(contents.folder, target, ignore=shutil.ignore_patterns(".run"))
    for place in (target, *target.rglob("*")):  # the bundle may be read-only
        place.chmod(place.stat().st_mode | 0o200)
    moved = list(take_in_for(contents, target, repository, files))
    for name in ("config.sh", "build.slurm", *([] if contents.batch_script else ["recipes/job.slurm"])):
        if (target / name).exists():
            text = (target / name).read_text(errors="surrogateescape")
            moved += rewrite(target / name, name, move_paths(text, cluster))
    return tuple(moved)


def move_paths(text: str, cluster: Path) -> str:
    """Put the cluster's root before each absolute path that is on the cluster."""

    def move(match: "re.Match[str]") -> str:
        stays = match["name"] in LOCAL or (match["start"].startswith("export") and match["name"] != "WORK_DIR")
        return match[0] if stays or "MOUNTS" in (match["name"] or "") else f"{match['start']}{cluster}"

    def move_sources(match: "re.Match[str]") -> str:
        return match[0].replace(match["list"], SOURCE.sub(rf"\g<start>{cluster}", match["list"]))

    text = ASSIGNMENT.sub(move, MOUNTS.sub(move_sources, text))
    return DIRECTIVE.sub(rf"\g<start>{cluster}", text)


def take_in_for(contents: Contents, target: Path, repository: Path, files: Path) -> Iterator[Moved]:
    """Where this machine lacks the repository or a file to send, name one of the rehearsal in its place."""
    text = (target / "config.sh").read_text(errors="surrogateescape")
    root = contents.value("REPO_ROOT")
    if root and not (Path(root) / ".git").exists():
        text = assign(text, "REPO_ROOT", f"'{repository}'")
    extra = contents.values.get("EXTRA_FILES", ())
    if any(not Path(file).exists() for file in extra):
        made = [Path(file) if Path(file).exists() else make_file(files / Path(file).name) for file in extra]
        words = ("'" + str(path).replace("'", "'\\''") + "'" for path in made)
        text = assign(text, "EXTRA_FILES", f"({' '.join(words)})")
    yield from rewrite(target / "config.sh", "config.sh", text)


def assign(text: str, name: str, value: str) -> str:
    return re.sub(rf"^readonly {name}=.*$", lambda _: f"readonly {name}={value}", text, flags=re.MULTILINE)


def make_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("made up for a rehearsal\n")
    return path


def rewrite(path: Path, name: str, text: str) -> list[Moved]:
    """Write the new text in place of the old, and tell the lines that differ."""
    old = path.read_text(errors="surrogateescape")
    if old != text:
        path.write_text(text, errors="surrogateescape")
    pairs = zip(old.splitlines(), text.splitlines(), strict=True)
    return [Moved(name, before, after) for before, after in pairs if before != after]


def make_folders(copy: Contents, home: Path) -> None:
    """Make what a site has before anybody comes: the folder to work in, what is mounted, an image file."""
    for name in ("REMOTE_CWD", "USER_ROOT"):
        if copy.value(name):
            at_home(copy.value(name), home).mkdir(parents=True, exist_ok=True)
    images = [copy.value("ENROOT_IMAGE")]
    for text in map(copy.text, ("build.slurm", "recipes/job.slurm")):
        for found in MOUNTS.finditer(text):
            for source in re.findall(r"(?:^|,)\$?'(/[^':]+)", found["list"]):
                Path(source).mkdir(parents=True, exist_ok=True)
        images += re.findall(r"^readonly CONTAINER_IMAGE='(/[^']+)'", text, re.MULTILINE)
    for image in images:
        if image.startswith("/"):
            make_image(Path(image))


def make_image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("hsqs\n")


def at_home(path: str, home: Path) -> Path:
    return home / path[2:] if path.startswith("~/") else home if path == "~" else Path(path)
