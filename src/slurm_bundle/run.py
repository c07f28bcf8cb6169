"""Turns a bundle into a run of it on this machine: its own scripts do the work; what happens is told as events."""

import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

Kind = Literal["start", "end", "say", "prompt", "state"]

# How the scripts begin a line, and what jobs.sh says when a job is in another state.
SAID = re.compile(r"([a-z_]+): ")
STATE = re.compile(r"(build|job) (\d[\d_]*): ([A-Z_]{4,})(?: \((.*)\)|: (.*))?")
QUIET_SECONDS = 0.3


@dataclass(frozen=True)
class Event:
    """One thing that happened in a run.

    `start` and `end` (with its exit `code`) of a step; `say`: a line (`text`) that it said; `prompt`: it waits for
    ENTER; `state`: a build or a job (`job` is its kind and id) is in another Slurm state (`text`, `detail`). `seconds`
    count from the start of the run.
    """

    kind: Kind
    seconds: float
    step: str
    text: str = ""
    code: int | None = None
    job: str = ""
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """The event as an object for programs; what it has nothing of is left out."""
        rest = {"text": self.text, "code": self.code, "job": self.job, "detail": self.detail}
        told = {name: value for name, value in rest.items() if value not in ("", None)}
        return {"event": self.kind, "seconds": round(self.seconds, 1), "step": self.step, **told}


def state_folder(folder: Path) -> Path:
    """Where the record of the run is: $GEN_STATE_DIR where that is set, else .run in the bundle."""
    return Path(os.environ.get("GEN_STATE_DIR") or folder / ".run")


def list_steps(folder: Path) -> tuple[str, ...]:
    """The steps of a bundle in the order that run_all.sh takes them, by its header."""
    found = re.search(r"^# Steps: +([a-z_ ]+);", (folder / "run_all.sh").read_text(), re.MULTILINE)
    return tuple(found[1].split()) if found else ()


def run_bundle(folder: Path, options: Sequence[str], show: Callable[[Event], None]) -> int:
    """Run run_all.sh, show each event, and give its exit code.

    An interrupt reaches the scripts by the terminal, and they end by themselves; here it is only waited for them.
    """
    teller = Teller(state_folder(folder), show)
    with subprocess.Popen(["bash", str(folder / "run_all.sh"), *options], stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        for line, whole in _read_lines(running.stderr):
            if line is None:
                teller.catch_up()
            elif whole:
                teller.hear(line)
            else:
                teller.tell("prompt", "", text=line)
        code = _wait(running)
    teller.catch_up()
    return code


class Teller:
    """Turns the lines that run_all.sh says, and its record of steps in the folder `state`, into events for `show`."""

    def __init__(self, state: Path, show: Callable[[Event], None]) -> None:
        self._began = time.monotonic()
        self._show = show
        self._steps = _StepRecord(state / "events.jsonl")

    def tell(self, kind: Kind, step: str, **rest: Any) -> None:
        self._show(Event(kind, time.monotonic() - self._began, step, **rest))

    def catch_up(self, speaker: str | None = None) -> None:
        """Tell the starts and ends of steps that are new; those that come before a line of `speaker`."""
        for kind, step, code in self._steps.read(speaker):
            self.tell(kind, step, code=code)

    def hear(self, line: str) -> None:
        """Tell a line that was said, and what it says of a job."""
        found = SAID.match(line)
        step, text = (found[1], line[found.end() :]) if found else ("", line)
        self.catch_up(step)
        self.tell("say", step, text=text)
        if state := STATE.fullmatch(text):
            self.tell("state", step, job=f"{state[1]} {state[2]}", text=state[3], detail=state[4] or state[5] or "")


def read_report(folder: Path) -> dict[str, Any] | None:
    """The report of the last run, None where there is none."""
    try:
        report: dict[str, Any] = json.loads((state_folder(folder) / "report.json").read_text())
    except (OSError, ValueError):
        return None
    return report


class _StepRecord:
    """The starts and ends of steps, as the scripts write them to events.jsonl, from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = path.stat().st_size if path.exists() else 0
        self._inode = path.stat().st_ino if path.exists() else 0
        self._waiting: list[tuple[Kind, str, int | None]] = []

    def read(self, speaker: str | None) -> Iterator[tuple[Kind, str, int | None]]:
        """What is new; up to where it fits, when `speaker` is about to say a line that it wrote some time ago.

        A step speaks between its start and its end, run_all before the start of the next; of a line with no name on
        it nothing is known.
        """
        self._waiting += self._read_new()
        while self._waiting and speaker != "":
            kind, step, _ = self._waiting[0]
            if (kind, step) == ("end", speaker) or (kind == "start" and speaker == "run_all"):
                return
            yield self._waiting.pop(0)

    def _read_new(self) -> Iterator[tuple[Kind, str, int | None]]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino != self._inode:  # the record of an earlier run was put aside
                    self._seen, self._inode = 0, os.fstat(file.fileno()).st_ino
                file.seek(self._seen)
                lines = file.read().splitlines(keepends=True)
        except OSError:
            return
        for line in lines:
            if line.endswith(b"\n"):
                self._seen += len(line)
                event = json.loads(line)
                yield event["event"], event["step"], event.get("code")


def _read_lines(pipe: IO[bytes]) -> Iterator[tuple[str | None, bool]]:
    """Each line and True; the text of a prompt and False; None whenever nothing came for a while."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            try:
                ready = selector.select(QUIET_SECONDS)
                chunk = os.read(pipe.fileno(), 65536) if ready else None
            except KeyboardInterrupt:
                continue
            if chunk is None:
                if rest.endswith(b": ") and sys.stdin.isatty():
                    yield rest.decode(errors="replace"), False
                    rest = b""
                yield None, True
                continue
            *lines, rest = (rest + chunk).split(b"\n")
            if not chunk and rest:
                lines.append(rest)
            for line in lines:
                yield line.decode(errors="replace").rstrip(), True
            if not chunk:
                return


def _wait(running: "subprocess.Popen[bytes]") -> int:
    while True:
        try:
            code = running.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code
