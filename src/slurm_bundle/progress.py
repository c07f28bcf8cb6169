"""Shows the events of a run: a live table of the steps on a terminal, else plain lines; for programs, JSON lines."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from slurm_bundle.run import Event

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Show = Callable[[Event], None]


@contextmanager
def show_progress(steps: tuple[str, ...], *, as_json: bool = False) -> Iterator[Show]:
    """What shows the events of a run of these steps, by where the output goes.

    On stderr: live where that is a terminal that can move its cursor, else a plain line for each line that is said. As
    JSON: an object a line, on stdout.
    """
    if as_json:
        yield lambda event: print(json.dumps(event.as_json(), ensure_ascii=False), flush=True)
        return
    if not sys.stderr.isatty():
        yield lambda event: show_plainly(event, sys.stderr)
        return
    from rich.console import Console  # rich is slow to import, and no other command wants it

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_dumb_terminal:
        yield lambda event: show_plainly(event, sys.stderr)
        return
    with LiveTable(steps, console) as table:
        yield table.show


def show_plainly(event: Event, out: TextIO) -> None:
    """A line for each line that is said, with the time since the start of the run."""
    if event.kind == "say":
        print(f"{clock(event.seconds):>6}  {said(event)}", file=out, flush=True)
    elif event.kind == "prompt":
        print(f"{clock(event.seconds):>6}  {event.text}", end="", file=out, flush=True)


def said(event: Event) -> str:
    return f"{event.step}: {event.text}" if event.step else event.text


def clock(seconds: float) -> str:
    """Minutes and seconds, and hours where there are any: 0:07, 12:00, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@dataclass
class Row:
    """A step as the table shows it."""

    state: str = "waiting"
    began: float = 0.0
    took: float | None = None
    note: str = ""


# How a state is marked: for a terminal that has the sign, for one that has not, and the colour.
MARKS = {
    "waiting": ("·", " ", "dim"),
    "running": ("●", "*", "cyan"),
    "done": ("✓", "+", "green"),
    "before": ("✓", "+", "dim"),
    "failed": ("✗", "x", "red"),
    "left out": ("·", " ", "dim"),
}


class LiveTable:
    """The steps with their states and times, kept below the lines that the scripts say."""

    def __init__(self, steps: tuple[str, ...], console: "Console") -> None:
        from rich.live import Live

        self.rows = {step: Row() for step in steps}
        self._console = console
        self._began = time.monotonic()
        self._signs = 0 if console.encoding.startswith("utf") else 1
        self._live = Live(get_renderable=self.render, console=console, refresh_per_second=4)

    def __enter__(self) -> "LiveTable":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        for row in self.rows.values():
            row.state = "left out" if row.state == "waiting" else row.state
        self._live.stop()

    def show(self, event: Event) -> None:
        from rich.text import Text

        self.take(event)
        if event.kind == "say":
            self._live.start()  # no more than a look at a flag, unless a prompt had stopped it
            self._console.print(Text(f"{clock(event.seconds):>6}  ", "dim").append(said(event), style="default"))
        elif event.kind == "prompt":
            self._live.transient = True  # the table goes while the terminal is the person's
            self._live.stop()
            self._live.transient = False
            self._console.print(event.text, end="", markup=False)

    def take(self, event: Event) -> None:
        """Bring the rows to where they are after this event."""
        if event.kind == "say" and event.step == "run_all" and event.text.endswith(" was done before"):
            self.rows.setdefault(event.text.split()[0], Row()).state = "before"
        if event.step in ("", "run_all"):
            return
        row = self.rows.setdefault(event.step, Row())
        if event.kind == "start":
            row.state, row.began, row.took, row.note = "running", event.seconds, None, ""
        elif event.kind == "end":
            row.state, row.took = ("failed" if event.code else "done"), event.seconds - row.began
            row.note = f"exit code {event.code}" if event.code else row.note
        elif event.kind == "state":
            row.note = f"{event.job} {event.text}{': ' if event.detail else ''}{event.detail}"

    def render(self) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2), expand=True)
        for options in ({"width": 3, "justify": "right"}, {}, {"justify": "right", "width": 7}, {"ratio": 1}):
            table.add_column(no_wrap=True, overflow="ellipsis", **options)
        now = time.monotonic() - self._began
        for step, row in self.rows.items():
            *signs, style = MARKS[row.state]
            took = now - row.began if row.state == "running" else row.took
            note = {"before": "done before", "left out": "not reached"}.get(row.state, row.note)
            shown = "" if took is None else clock(took)
            table.add_row(Text(signs[self._signs], style), Text(step, style), Text(shown, "dim"), Text(note))
        return table
