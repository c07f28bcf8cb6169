"""A run told as events, and shown: with a run_all.sh that does nothing but talk."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from slurm_bundle.progress import LiveTable, clock
from slurm_bundle.run import Event, list_steps, run_bundle

TALK = r"""#!/usr/bin/env bash
# Steps:    preflight sync submit monitor collect; and cleanup, only when asked for
state=$(dirname "$0")/.run
record() { printf '{"time":"","step":"%s","event":"%s"%s}\n' "$1" "$2" "${3:+,\"code\":$3}" >>"$state/events.jsonl"; }
say() { printf '%s\n' "$*" >&2; }
record preflight start; say 'preflight: lab is ready: slurm 22.05'
[ ! -t 0 ] || read -r -p 'Press ENTER here when that is done: '
record preflight end 0
say 'run_all: sync was done before'
record monitor start
say 'monitor: job 12: PENDING (Resources; estimated start: N/A)'
say 'monitor: job 12: RUNNING: loss: 0.5 (best)'
printf 'no step said this: \xff\n' >&2
say 'monitor: FAILED: job 12 failed with exit code 3'; record monitor end 1
printf 'collect: no end of line' >&2
exit 1
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "run_all.sh").write_text(TALK)
    (tmp_path / ".run").mkdir()
    (tmp_path / ".run" / "events.jsonl").write_text('{"time":"","step":"sync","event":"start"}\n')
    return tmp_path


def test_what_happens_is_told_in_order_and_nothing_of_an_earlier_run(bundle: Path) -> None:
    events: list[Event] = []
    assert run_bundle(bundle, [], events.append) == 1
    assert [(event.kind, event.step, event.text or event.code) for event in events] == [
        ("start", "preflight", None),
        ("say", "preflight", "lab is ready: slurm 22.05"),
        ("end", "preflight", 0),
        ("say", "run_all", "sync was done before"),
        ("start", "monitor", None),
        ("say", "monitor", "job 12: PENDING (Resources; estimated start: N/A)"),
        ("state", "monitor", "PENDING"),
        ("say", "monitor", "job 12: RUNNING: loss: 0.5 (best)"),
        ("state", "monitor", "RUNNING"),
        ("say", "", "no step said this: \N{REPLACEMENT CHARACTER}"),
        ("say", "monitor", "FAILED: job 12 failed with exit code 3"),
        ("end", "monitor", 1),
        ("say", "collect", "no end of line"),
    ]
    states = [(event.job, event.detail) for event in events if event.kind == "state"]
    assert states == [("job 12", "Resources; estimated start: N/A"), ("job 12", "loss: 0.5 (best)")]


def test_the_steps_are_those_of_the_header(bundle: Path) -> None:
    assert list_steps(bundle) == ("preflight", "sync", "submit", "monitor", "collect")


def test_an_event_for_programs_has_no_empty_members() -> None:
    event = Event("end", 1.26, "sync", code=0)
    assert event.as_json() == {"event": "end", "seconds": 1.3, "step": "sync", "code": 0}


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (67.9, "1:07"), (3600, "1:00:00"), (90061, "25:01:01")])
def test_a_time_is_read_at_a_glance(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def table_after(*events: Event, encoding: str = "utf-8") -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=out, force_terminal=True, width=60, color_system=None)
    table = LiveTable(("preflight", "sync", "monitor"), console)
    for event in events:
        table.take(event)
    with console.capture() as shown:
        console.print(table.render())
    return [line.rstrip() for line in shown.get().splitlines()]


RUN = (
    Event("say", 1, "run_all", "preflight was done before"),
    Event("start", 1, "sync"),
    Event("end", 3.5, "sync", code=0),
    Event("start", 4, "monitor"),
    Event("state", 5, "monitor", "PENDING", job="job 12", detail="Resources " * 9),
)


def test_the_table_shows_where_each_step_is_and_stays_within_the_terminal() -> None:
    shown = table_after(*RUN)
    assert shown[0] == "  ✓  preflight           done before"
    assert shown[1] == "  ✓  sync          0:02"
    assert shown[2].startswith("  ●  monitor ")
    assert "job 12 PENDING: Resources" in shown[2]
    assert len(shown) == 3
    assert max(map(len, shown)) <= 60
    assert table_after(*RUN, Event("end", 9, "monitor", code=8))[2] == "  ✗  monitor       0:05  exit code 8"


def test_a_terminal_without_these_signs_gets_others() -> None:
    shown = "\n".join(table_after(*RUN, encoding="ascii"))
    assert shown.encode("ascii", errors="replace").decode().split("\n")[0] == "  +  preflight           done before"


SHOW = """
import sys
from pathlib import Path
from slurm_bundle.progress import show_progress
from slurm_bundle.run import list_steps, run_bundle
folder = Path(sys.argv[1])
with show_progress(list_steps(folder), as_json="json" in sys.argv) as show:
    run_bundle(folder, [], show)
"""


def show(bundle: Path, *options: str, terminal: str = "") -> tuple[str, str]:
    """What is shown on stdout and on stderr; on a terminal of that kind, which somebody presses ENTER in."""
    command = [sys.executable, "-c", SHOW, str(bundle), *options]
    if not terminal:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr
    mine, theirs = os.openpty()
    env = {**os.environ, "TERM": terminal, "COLUMNS": "80"}
    shown, answered = b"", 0
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, env=env) as running:
        os.close(theirs)
        while True:
            try:
                shown += os.read(mine, 4096)
            except OSError:  # the other side is closed
                break
            if not answered and b"is done: " in shown:
                answered = os.write(mine, b"\n")
        assert running.wait() == 0
    os.close(mine)
    return "", shown.decode()


def test_in_a_pipe_it_is_plain_lines_with_the_time(bundle: Path) -> None:
    out, said = show(bundle)
    assert out == ""
    assert "  0:00  preflight: lab is ready: slurm 22.05\n" in said
    assert "\x1b" not in said


def test_for_programs_it_is_an_object_a_line(bundle: Path) -> None:
    out, said = show(bundle, "json")
    assert said == ""
    assert json.loads(out.splitlines()[-1])["text"] == "no end of line"


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_on_a_terminal_a_question_is_seen_before_it_is_answered(bundle: Path, terminal: str) -> None:
    _, said = show(bundle, terminal=terminal)
    assert said.index("Press ENTER") < said.index("sync was done before")
    assert ("\x1b[" in said) == (terminal == "xterm")
