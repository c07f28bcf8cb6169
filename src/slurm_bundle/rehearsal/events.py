"""What has happened in a rehearsal: each call of a stand-in, and each fetch, push and clone of git, in their order."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.place import Place

TOLD_OF_GIT = ("clone", "fetch", "push", "checkout", "stash")


@dataclass(frozen=True)
class Event:
    """A call: when it began (seconds by the clock there), how long it took, its side, what it was, how it ended."""

    time: float
    seconds: float
    side: str
    command: str
    arguments: tuple[str, ...]
    folder: str
    code: int
    files: tuple[str, ...] = ()  # on the cluster, made or changed meanwhile (ssh only)
    sent: str = ""  # the file of the rehearsal that holds the beginning of what was sent (ssh only)
    bytes: int = 0  # how much was sent
    fault: str = ""  # the fault that struck, by the command that it is for
    more: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**self.__dict__, "arguments": list(self.arguments), "files": list(self.files)}


def read_events(folder: Path) -> tuple[Event, ...]:
    """All events of the rehearsal in `folder`, in the order in which they began."""
    return tuple(sorted([*calls(folder), *git_calls(folder)], key=lambda event: event.time))


def calls(folder: Path) -> Iterator[Event]:
    path = folder / "events.jsonl"
    for line in path.read_text().splitlines() if path.exists() else []:
        found = json.loads(line)
        known = {name: found.pop(name) for name in list(found) if name in Event.__dataclass_fields__}
        known.update(arguments=tuple(known["arguments"]), files=tuple(known.get("files", ())), more=found)
        yield Event(**known)


def git_calls(folder: Path) -> Iterator[Event]:
    """git tells of itself (GIT_TRACE2_EVENT): a file a process; those that git started itself are left out."""
    ours, theirs, factor = Clock(Place(str(folder), "local")).read()
    for path in sorted((folder / "git").glob("*/*")):
        lines = [json.loads(line) for line in path.read_text(errors="replace").splitlines() if line.startswith("{")]
        by_name = {line["event"]: line for line in lines}
        start, end = by_name.get("start"), by_name.get("exit")
        if start is None or "/" in start["sid"] or by_name.get("cmd_name", {}).get("name") not in TOLD_OF_GIT:
            continue
        began = datetime.fromisoformat(start["time"].replace("Z", "+00:00")).timestamp()
        yield Event(
            time=round(theirs + (began - ours) * factor, 1),
            seconds=round(end["t_abs"], 3) if end else 0.0,
            side=path.parent.name,
            command="git",
            arguments=tuple(start["argv"][1:]),
            folder=by_name.get("def_repo", {}).get("worktree", ""),
            code=end["code"] if end else -1,
        )
