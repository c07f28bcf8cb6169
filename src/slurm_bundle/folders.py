"""Turns folders on the cluster into problems, each told by the field of the spec that made the folder what it is."""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from slurm_bundle.mounts import parse_mount
from slurm_bundle.resolving import Resolution


def name_of_repository(url: str) -> str:
    """The last part of an address, without .git: `git@host:a/engine.git` is `engine`."""
    return re.sub(r"\.git$", "", PurePosixPath(url.rstrip("/").replace(":", "/")).name)


def root_of(r: Resolution) -> str:
    return "default_user_root_dir" if r["default_user_root_dir"] else "remote_cwd"


def parts_of(r: Resolution, name: str) -> Iterator[tuple[str, str]]:
    """What a folder is made of, as pairs of a field and its part of the path: the parts first, then the whole."""
    derived = r.origin(name).startswith("derived: ")
    if name == "remote_work_dir" and derived:
        yield from parts_of(r, "remote_repo_path")
        yield "work_dir", f"/{PurePosixPath(r['work_dir'] or '').name}"
    if name == "remote_repo_path" and derived:
        yield from parts_of(r, root_of(r))
        yield "repo_url", f"/{name_of_repository(r['repo_url'] or '')}"
    yield name, r[name] or "/"


def find_culprit(r: Resolution, folder: str, object_to: Callable[[str], str | None]) -> tuple[str, str] | None:
    """Give the first part of a folder that there is an objection to, as its field of the spec, and the objection."""
    for name, path in parts_of(r, folder):
        objection = object_to(path)
        if objection:
            written = re.fullmatch(r"spec: ([a-z_.]+)", r.origin(name))
            return written[1] if written else name, f"{r[name]!r}: {objection}"
    return None


def check_mountable(r: Resolution) -> None:
    """Refuse a folder that pyxis cannot mount: the job, or the build, has to find it inside the container."""
    build = r.read.spec.build_project is not False
    if r["container_runtime"] != "pyxis" or (r["recipe"] == "batch" and not build):
        return
    for folder in ("remote_repo_path", "remote_work_dir", *([root_of(r)] if build else [])):
        culprit = find_culprit(r, folder, object_to_mount)
        if culprit:
            field, objection = culprit
            r.wrong(field, objection)
            return


def object_to_mount(path: str) -> str | None:
    said = "the container has to see the folder, and"
    if ":" in path:
        return f"{said} {path!r} has a colon, which parts a mount and cannot be escaped; give a path without one"
    try:
        parse_mount(path)
    except ValueError as error:
        return f"{said} {error}"
    return None


def check_log_folder(r: Resolution) -> None:
    """Refuse a folder that Slurm would take for another one: log names are relative to it, and it reads the whole path.

    Tried with 22.05: the log ends up elsewhere, or the job fails with 0:53. There is no way to write such a folder.
    """
    culprit = find_culprit(r, "remote_work_dir", object_to_log_folder)
    if culprit:
        r.wrong(*culprit)


def object_to_log_folder(path: str) -> str | None:
    found = re.search(r"%[0-9]*[AaJjNnstux]|%[0-9]|%%|\\", path)
    return f"{path!r} has {found[0]!r}, which Slurm replaces in the path of a log; take it out" if found else None
