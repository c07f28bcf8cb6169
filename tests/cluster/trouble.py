"""A world in which things go wrong, and what every failure has to leave behind: nothing."""

import pwd
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.conftest import Ran, World, wait_for
from tests.project import git, photograph


@dataclass
class Site:
    """A world in which things go wrong. `env` is for the step; what is changed outside of the world is put back."""

    world: World
    undo: ExitStack
    env: dict[str, str] = field(default_factory=dict)
    before: frozenset[int] = frozenset()  # what ran before, such as what an earlier test has cut off

    def run(self, command: str, *arguments: object) -> None:
        subprocess.run([command, *map(str, arguments)], check=True, capture_output=True)

    def mount(self, folder: Path, options: str) -> Path:
        """Put a small file system at a folder, for this side, the login node and the nodes."""
        folder.mkdir(parents=True, exist_ok=True)
        self.run("mount", "-t", "tmpfs", "-o", f"mode=777,{options}", "tmpfs", folder)
        self.undo.callback(self.run, "umount", "--lazy", folder)
        return folder

    def start_up(self, line: str) -> None:
        """What the start-up file of the user's shell on the login node says."""
        file = Path(self.world.cluster["GEN_USER_HOME"]) / ".bashrc"
        file.write_text(f"{line}\n")
        self.undo.callback(file.unlink)

    def closed_port(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return str(free.getsockname()[1])

    def silent_port(self) -> str:
        """A port where somebody accepts and says nothing."""
        server = self.undo.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen()
        return str(server.getsockname()[1])

    def hook(self, name: str, text: str) -> None:
        path = self.world.origin / "hooks" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def move_origin(self, url: str) -> None:
        git(self.world.repo, "remote", "set-url", "origin", url)

    def ssh_has(self, *options: str) -> None:
        """What the ssh configuration of the user says of the login node."""
        wrapper = self.world.folder / "bin" / "ssh"
        words = " ".join(f"-o {shlex.quote(option)}" for option in options)
        mine = f'case " $* " in *" {self.world.cluster["GEN_SSH_HOST"]} "*) set -- {words} "$@" ;; esac'
        wrapper.write_text(wrapper.read_text().replace("\nexec ", f"\n{mine}\nexec "))

    def known_hosts(self, text: str) -> None:
        file = self.world.folder / "known_hosts"
        file.write_text(text)
        self.ssh_has(f"UserKnownHostsFile={file}")

    def tools_without(self, *names: str, path: str) -> Path:
        """A folder with every command of a PATH but these."""
        tools = self.world.root / "tools"
        tools.mkdir()
        for folder in path.split(":"):
            for tool in Path(folder).iterdir():
                if tool.name not in names and not (tools / tool.name).is_symlink():
                    (tools / tool.name).symlink_to(tool)
        return tools

    def lack_here(self, name: str) -> None:
        self.env["PATH"] = str(self.tools_without(name, path=self.world.env["PATH"]))

    def lack_there(self, *names: str) -> None:
        self.start_up(f"PATH={self.tools_without(*names, path='/usr/bin:/bin')}")


Changes = dict[str, Any] | None
Prepare = Callable[[Site], Changes]


@contextmanager
def open_site(world: World) -> Iterator[Site]:
    (world.folder / "tmp").mkdir()
    with ExitStack() as undo:
        yield Site(world, undo, {"TMPDIR": str(world.folder / "tmp")}, frozenset(running(world)))


def running(world: World) -> dict[int, str]:
    """What runs of this world: here, and of the user on the cluster; the command line by its pid."""
    user = pwd.getpwnam(world.cluster["GEN_USER"]).pw_uid
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"HOME={world.folder}".encode() in (process / "environ").read_bytes().split(b"\0")
            if ours or process.stat().st_uid == user:
                found[int(process.name)] = (process / "cmdline").read_text()
        except OSError:
            continue  # it has ended
    return found


def wait_for_silence(site: Site) -> None:
    """Wait until nothing of the world runs any more."""
    end = time.monotonic() + 30
    while left := {pid: line for pid, line in running(site.world).items() if pid not in site.before}:
        assert time.monotonic() < end, f"left running: {left}"
        time.sleep(0.2)


def temporary_files(world: World) -> set[Path]:
    here = world.folder / "tmp"
    return {*Path("/tmp").glob("tmp.*"), *here.glob("*")}


def is_ours(world: World, path: Path) -> bool:
    user = pwd.getpwnam(world.cluster["GEN_USER"]).pw_uid
    return path.exists() and (path.is_relative_to(world.folder) or path.stat().st_uid == user)


def meet(site: Site, step: str, code: int, *words: str, **changes: Any) -> Ran:
    """Run a step into its trouble: it says these words in one line or two, and leaves nothing behind."""
    world = site.world
    world.bundle(**changes)
    world.state.mkdir(exist_ok=True)
    if step not in ("preflight.sh", "sync.sh"):
        (world.state / "snapshot").write_text("0123456789\n")
    before, temporary = photograph(world.repo), temporary_files(world)
    ran = world.run(step, env=site.env, limit=60)
    said = ran.said.splitlines()
    assert ran.code == code, ran.said
    for word in words:
        assert word in ran.said
    assert 1 <= len(said) <= 2, ran.said
    assert all(line.startswith(f"{step.removesuffix('.sh')}: ") for line in said), ran.said
    assert not re.search(r"\r|\.\.(?!\w)|\. \.| \. |\?\.|: \.(?![\w/])", ran.said), ran.said
    assert photograph(world.repo) == before
    assert world.branches_on_origin() == ["main"]
    wait_for(lambda: not world.slurm("squeue", "--noheader", f"--user={world.cluster['GEN_USER']}"))
    wait_for_silence(site)
    assert not {path for path in temporary_files(world) - temporary if is_ours(world, path)}
    return ran
