"""ssh, for the tests of headers: each login script gets a PATH of its own, and what it changes is noted.

Usage: watch_ssh.py WATCH.json ARGUMENT...

A bundle sends its scripts to a plain `bash -s`. Here the stream is read until it holds one of the login scripts, and
`bash -s` becomes a bash in the environment that WATCH.json has for that script. All else goes to ssh as it is.
"""

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

Photograph = dict[str, str]


def photograph(roots: Iterable[str], left_out: Iterable[str], scratch: Iterable[str]) -> Photograph:
    """What there is below some folders: of a file, what tells whether it was written to; of a folder, its mode.

    Of a folder for scratch, also whether something came and went in it.
    """
    taken: Photograph = {}
    waiting = list(roots)
    for path in waiting:
        what = os.lstat(path)
        if path in left_out:
            continue
        if stat.S_ISDIR(what.st_mode):
            taken[path] = f"folder {what.st_mode:o} {what.st_mtime_ns if path in scratch else ''}"
            waiting += [entry.path for entry in os.scandir(path)]
        else:
            # git renews the time of an object that it meets again.
            time = "" if "/.git/objects/" in path else what.st_mtime_ns
            taken[path] = f"{what.st_mode:o} {what.st_ino} {what.st_size} {time}"
    return taken


def changes(before: Photograph, after: Photograph) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def read_script(scripts: dict[str, str]) -> tuple[bytes, str]:
    """Read stdin until it holds one of the scripts: what was read, which may be more than the script, and its name."""
    read = b""
    while chunk := os.read(0, 1 << 16):
        read += chunk
        for name, text in scripts.items():
            if text.encode() in read:
                return read, name
    return read, ""


def run_there(command: list[str], stream: bytes) -> int:
    """Run ssh with what was read from stdin, and with what follows there."""
    running = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert running.stdin
    try:
        while stream:
            running.stdin.write(stream)
            running.stdin.flush()
            stream = os.read(0, 1 << 16)
        running.stdin.close()
    except BrokenPipeError:
        pass  # the script ended without taking its data
    return running.wait()


def main() -> None:
    watch, arguments = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2:]
    if arguments[-2:] != ["bash", "-s"]:
        os.execv(watch["ssh"], [watch["ssh"], *arguments])
    stream, script = read_script(watch["scripts"])
    there = ["exec", "env", *watch["environments"].get(script, []), "/bin/bash", "-s"]
    busy = Path(watch["busy"]).exists()
    before = photograph(**watch["there"])
    code = run_there([watch["ssh"], *arguments[:-2], shlex.join(there)], stream)
    changed = changes(before, photograph(**watch["there"]))
    with Path(watch["sessions"]).open("a") as sessions:
        told = {"script": script, "busy": busy or Path(watch["busy"]).exists(), "changed": sorted(changed)}
        sessions.write(json.dumps(told) + "\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
