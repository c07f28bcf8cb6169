"""Turns a rehearsal into its record: readable text, an object for programs, and the short form for a README."""

import json
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from slurm_bundle.problems import show_text
from slurm_bundle.rehearsal.events import Event
from slurm_bundle.rehearsal.rehearse import Rehearsed, Run, outside

SUBMITTING = ("submit_build", "submit")
SIDES = {"local": "here", "login": "login node", "node": "node"}


class Record:
    """What happened in a rehearsal, each call with its step, and with paths as they are outside of a rehearsal."""

    def __init__(self, rehearsed: Rehearsed) -> None:
        self.rehearsed = rehearsed
        self._starts = list(read_starts(rehearsed.folder / "state" / "events.jsonl"))

    def plain(self, text: str) -> str:
        """A text of the rehearsal without the paths that only a rehearsal has."""
        return outside(text, self.rehearsed.folder, self.rehearsed.bundle)

    def calls(self) -> Iterator[tuple[str, Event]]:
        """Each call with the step that it belongs to, in the order in which they began."""
        for event in self.rehearsed.events:
            begun = [step for time, step in self._starts if time <= event.time]
            yield (begun or [""])[-1], event

    def files(self) -> list[str]:
        """The files on the cluster in the end, but for what is inside of .git."""
        root = self.rehearsed.folder / "cluster"
        found = (path for path in root.rglob("*") if path.is_symlink() or not path.is_dir())
        return sorted(f"/{path}" for full in found if ".git" not in (path := full.relative_to(root)).parts)


def read_starts(path: Path) -> Iterator[tuple[float, str]]:
    """When each step began, by the clock of the practice cluster."""
    for line in path.read_text().splitlines() if path.exists() else []:
        event = json.loads(line)
        if event["event"] == "start" and event["step"] != "run_all":
            yield datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp(), event["step"]


def conclude(run: Run) -> str:
    """How a run ended, in a line."""
    status = f", {run.status}" if run.status else ""
    return f"exit code {run.code}{status}"


def write_transcript(rehearsed: Rehearsed) -> str:
    """Give the readable record: each command that would have reached the cluster or origin, and each file."""
    record = Record(rehearsed)
    ends = "; then, run again, with ".join(map(conclude, rehearsed.runs))
    lines = [
        f"Rehearsal of {rehearsed.bundle}",
        f"Scenario {rehearsed.scenario.name}: {rehearsed.scenario.what}",
        f"run_all.sh ended with {ends}",
        f"What the user is told: {show_text(record.plain(rehearsed.told))}",
        "",
        "Each command is shown with the time on the practice cluster, the side on which it ran, and its exact",
        "arguments; below it what it sent, and which files were made or changed on the cluster meanwhile.",
    ]
    began = min((event.time for event in rehearsed.events), default=0.0)
    for step, calls in groupby(record.calls(), key=lambda call: call[0]):
        lines += ["", f"{step or 'your login'}:"]
        for _, event in calls:
            lines += tell_call(record, event, event.time - began)
    lines += ["", "Files on the cluster in the end:", *(f"  {show_text(path)}" for path in record.files())]
    return "\n".join(lines) + "\n"


def tell_call(record: Record, event: Event, seconds: float) -> Iterator[str]:
    minutes, rest = divmod(int(seconds), 60)
    words = show_text(record.plain(shlex.join([event.command, *event.arguments])))
    yield f"  {minutes:3}:{rest:02}  {SIDES[event.side]:10}  {words}"
    indent = " " * 22
    if event.bytes:
        yield f"{indent}sent {event.bytes} bytes on its standard input"
    for path in event.files:
        yield f"{indent}wrote {show_text(path)}"
    if event.code or event.fault:
        fault = " (this scenario's doing)" if event.fault else ""
        yield f"{indent}ended with exit code {event.code}{fault}"


def as_json(rehearsed: Rehearsed, *, with_calls: bool = True) -> dict[str, Any]:
    """The record as an object for programs; times in seconds, of the practice cluster but for `seconds`."""
    record = Record(rehearsed)
    told: dict[str, Any] = {
        "event": "rehearsed",
        "scenario": rehearsed.scenario.name,
        "what": rehearsed.scenario.what,
        "exit_code": rehearsed.exit_code,
        "status": rehearsed.status,
        "told": record.plain(rehearsed.told),
        "as_expected": rehearsed.as_expected,
        "interrupted": rehearsed.interrupted,
        "lost": list(rehearsed.lost),
        "seconds": rehearsed.seconds,
        "runs": [
            {"exit_code": run.code, "status": run.status, "said": [record.plain(line) for line in run.said]}
            for run in rehearsed.runs
        ],
        "jobs": [{"id": job, "name": name, "state": state} for job, name, state in rehearsed.jobs],
    }
    if with_calls:
        told["commands"] = [
            {"step": step, **event.as_json(), "arguments": [record.plain(word) for word in event.arguments]}
            for step, event in record.calls()
        ]
        told["files"] = record.files()
    return told


def write_row(rehearsed: Rehearsed) -> str:
    """Give the row of a scenario in the table of all: two lines or more, which fit in 80 columns."""
    codes = ", ".join(str(run.code) for run in rehearsed.runs)
    mark = "" if rehearsed.as_expected else "  NOT AS IT HAS TO BE"
    lost = ", ".join(rehearsed.lost) or "nothing lost"
    first = f"{rehearsed.scenario.name:24}{codes:>6}  {rehearsed.status or '-':14}{lost}{mark}"
    told = Record(rehearsed).plain(rehearsed.told) or last_said(rehearsed)
    body = textwrap.fill(
        show_text(told), 78, initial_indent="    ", subsequent_indent="    ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return f"{first}\n{body}"


def last_said(rehearsed: Rehearsed) -> str:
    return next((line for line in reversed(rehearsed.runs[-1].said) if line), "")


def write_end(out: Path, results: Sequence[Rehearsed]) -> str:
    """Give the last lines for somebody who watched: how it ended, and where to look next."""
    if results[-1].interrupted:
        return f"{out}: interrupted while rehearsing {results[-1].scenario.name}"
    wrong = [rehearsed.scenario.name for rehearsed in results if not rehearsed.as_expected]
    if len(results) > 1:
        seconds = sum(rehearsed.seconds for rehearsed in results)
        ended = f"{len(results)} scenarios in {seconds:.0f} s: " + (
            f"not as it has to be: {', '.join(wrong)}" if wrong else "each ended as it has to, and nothing was lost"
        )
        return f"{out}: {ended}"
    rehearsed = results[0]
    ends = ", then ".join(map(conclude, rehearsed.runs))
    verdict = "NOT as it has to be" if wrong else "as it has to be"
    lost = f"; lost: {', '.join(rehearsed.lost)}" if rehearsed.lost else ""
    return f"{out}: rehearsed {rehearsed.scenario.name}: {ends}: {verdict}{lost}"


def write_short(rehearsed: Rehearsed) -> str:
    """Give the short form, as a section of Markdown: which commands each step has brought to which side."""
    record = Record(rehearsed)
    ended = conclude(rehearsed.runs[-1])
    lines = [
        "## Rehearsed",
        "",
        "All of it ran against a practice cluster, with the commands of the spec played and not run: "
        f"{ended}{'' if rehearsed.as_expected else ', which is NOT as it has to be'}.",
        "What each step would have brought to which side (`gen rehearse --transcript` shows every argument):",
        "",
        "| step | here | login node | nodes |",
        "| --- | --- | --- | --- |",
    ]
    by_step: dict[str, list[Event]] = {}
    for step, event in record.calls():
        if event.side == "node":  # whenever it was started, it is what was submitted last
            step = next(name for name in reversed(by_step) if name in SUBMITTING)
        by_step.setdefault(step, []).append(event)
    for step, events in by_step.items():
        cells = (", ".join(names_on(side, events)) for side in SIDES)
        name = f"{step}.sh" if step else "your login"  # what is done before anything is run
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", ""])


def names_on(side: str, events: Iterable[Event]) -> list[str]:
    """The commands of a side, each once, git with its subcommand."""
    names = (name_of(event) for event in events if event.side == side)
    return list(dict.fromkeys(names))


def name_of(event: Event) -> str:
    known = ("clone", "fetch", "push", "checkout", "stash")
    subcommand = next((word for word in event.arguments if word in known), "") if event.command == "git" else ""
    return f"{event.command} {subcommand}".strip()
