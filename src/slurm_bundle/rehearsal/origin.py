"""The practice origin: where pushes and fetches of a rehearsal go, so that the real one is never asked.

It borrows the objects of the user's repository (as alternates), so it takes no room and no time. git is led to it by
its own configuration of both sides' homes, and may use no transport but plain files (GIT_ALLOW_PROTOCOL=file): where a
URL were overlooked, git would refuse it.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0"}
PERSON = ("-c", "user.name=Practice", "-c", "user.email=practice@localhost", "-c", "commit.gpgSign=false")


def ask(folder: Path, *arguments: str, quiet: bool = True) -> str:
    """What git prints; nothing where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(QUIET if quiet else {"GIT_OPTIONAL_LOCKS": "0"})
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def make_origin(origin: Path, repository: Path, *, refusal: str = "") -> None:
    """A bare repository that has all that `repository` has, on the branch main. With `refusal`, it takes no push."""
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--template=", str(origin)], check=True, env={**os.environ, **QUIET}
    )
    for name, value in (("gc.auto", "0"), ("receive.autogc", "false"), ("receive.shallowUpdate", "true")):
        ask(origin, "config", name, value)
    objects = ask(repository, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    if not objects:  # a git before 2.31
        objects = str(repository / ask(repository, "rev-parse", "--git-path", "objects"))
    info = origin / "objects" / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "alternates").write_text(f"{objects}\n")
    shallow = repository / (ask(repository, "rev-parse", "--git-path", "shallow") or ".git/shallow")
    if shallow.exists():
        (origin / "shallow").write_bytes(shallow.read_bytes())
    head = ask(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    if head:
        ask(origin, "update-ref", "refs/heads/main", head)
        ask(origin, "symbolic-ref", "HEAD", "refs/heads/main")
    if refusal:
        hook = origin / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        lines = "".join(f"echo {quote(line)} >&2\n" for line in refusal.splitlines())
        hook.write_text(f"#!/bin/sh\n{lines}exit 1\n")
        hook.chmod(0o755)


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def urls_of(repository: Path) -> list[str]:
    """Every URL by which the repository may reach its origin: as written down, and as git has it in the end."""
    asked = [
        ask(repository, "config", "--get-all", "remote.origin.url"),
        ask(repository, "config", "--get-all", "remote.origin.pushurl"),
        ask(repository, "remote", "get-url", "--all", "origin", quiet=False),
        ask(repository, "remote", "get-url", "--all", "--push", "origin", quiet=False),
    ]
    return [url for text in asked for url in text.splitlines() if url]


def write_configuration(home: Path, origin: Path, urls: Iterable[str], own: Iterable[tuple[str, str]] = ()) -> None:
    """git's configuration of a home: `own`, sections of the user's, and every URL led to the practice origin."""
    lines = [f"[{section}]\n\t{line}\n" for section, line in own]
    for url in dict.fromkeys(urls):
        text = url.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[url "{origin}"]\n\tinsteadOf = "{text}"\n\tpushInsteadOf = "{text}"\n')
    (home / ".gitconfig").write_text("".join(lines))


def own_configuration() -> list[tuple[str, str]]:
    """What the user has configured: it says how files are read here (ends of lines, what is ignored)."""
    place = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"
    files = [path for path in (place / "config", Path.home() / ".gitconfig") if path.exists()]
    return [("core", f'excludesFile = "{place / "ignore"}"'), *(("include", f'path = "{path}"') for path in files)]


def make_repository(folder: Path) -> None:
    """A small repository with work that is not committed, for a bundle whose own is not on this machine."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--template=", str(folder)], check=True, env={**os.environ, **QUIET})
    (folder / "README.md").write_text(
        "Made up for a rehearsal: the repository of this bundle is not on this machine.\n"
    )
    (folder / "hello.py").write_text('print("hello")\n')
    ask(folder, "add", "--all")
    ask(folder, *PERSON, "commit", "--quiet", "--message=First")
    (folder / "hello.py").write_text('print("hello, not committed")\n')
    (folder / "notes.txt").write_text("not tracked\n")


def photograph(repository: Path) -> dict[str, tuple[int, int, int]]:
    """Each file of a repository with its kind, size and time; but for objects, whose times git itself renews."""
    taken = {}
    for folder, folders, files in os.walk(repository):
        for name in [*files, *folders]:
            path = f"{folder}/{name}"
            what = os.lstat(path)
            renewed = name in folders or path.startswith(f"{repository}/.git/objects")
            size = what.st_size if name in files else 0
            taken[path] = (what.st_mode, size, 0 if renewed else what.st_mtime_ns)
    return taken
