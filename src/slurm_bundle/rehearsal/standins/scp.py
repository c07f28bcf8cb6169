"""scp: copies between this side and the cluster, whose file system is a folder here."""

import os

from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.ssh import Call, Session

FLAGS = "346ABCOpqRrsTv"
VALUES = "cDFiJloPSX"


def run(place: Place, words: list[str]) -> int:
    copy: list[str] = ["-p"]
    options: list[str] = []
    names: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            names += queue
            break
        if word.startswith("-") and word[1:2] in VALUES:
            value = word[2:] or queue.pop(0)
            options += [f"-{'p' if word[1] == 'P' else word[1]}", value]
        elif word.startswith("-") and len(word) > 1:
            copy += ["-R"] if "r" in word else []
            if set(word[1:]) - set(FLAGS):
                raise StopError(1, f"scp: unknown option -- {word[1:]}", "usage: scp [options] source ... target")
        else:
            names.append(word)
    if len(names) < 2:
        raise StopError(1, "usage: scp [options] source ... target")
    paths = [path_here(place, name, options) for name in names]
    return copy_files(copy, paths)


def path_here(place: Place, name: str, options: list[str]) -> str:
    """HOST:PATH as a path on this machine; whether the host can be reached is looked at first."""
    host, colon, path = name.partition(":")
    if not colon or "/" in host:
        return name
    Session(place, Call([*options, host])).reach()
    if path.startswith("~/"):
        path = path[2:]
    return path if path.startswith("/") else f"{place.home_there()}/{path}"


def copy_files(copy: list[str], paths: list[str]) -> int:
    *sources, target = paths
    for source in sources:
        if not os.path.lexists(source):
            complain(f'scp: stat local "{source}": No such file or directory')
            return 1
    child = os.fork()
    if not child:
        os.execvp("cp", ["cp", *copy, "--", *sources, target])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return min(abs(code), 1)
