"""play: what runs in place of the user's own commands, unless a rehearsal is to run those: some lines, some seconds.

PLACE/play says what the bundle looks for in a log: success, the text of a success pattern; hang, a hang phrase; build,
what a build ends with. A fault of the scenario (on=play) makes the command of its kind fail, hang or never end.
"""

import os
import sys

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.faults import read_faults
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.records import load_record

STEPS = {"build": 5, "job": 4}
PAUSE = 15  # seconds by the clock there


def run(place: Place, words: list[str]) -> int:
    kind = words[0]
    texts = load_record(f"{place.root}/play")
    fault = next((fault for fault in read_faults(place) if fault["on"] == "play" and fault["kind"] == kind), {})
    clock = Clock(place)
    first = os.environ.get("SLURM_PROCID", "0") == "0"
    if first:
        say(f"rehearsal: here would run: {' '.join(words[1:])}")
    for number in range(1, STEPS[kind] + 1):
        clock.sleep(PAUSE)
        if first:
            share = number * 100 // STEPS[kind]
            say(
                f"[{share:3d}%] Building CXX object part_{number}.o"
                if kind == "build"
                else f"step {number} of {STEPS[kind]}"
            )
    return end(clock, kind, texts, fault, first=first)


def end(clock: Clock, kind: str, texts: dict[str, str], fault: dict[str, str], *, first: bool) -> int:
    what = fault.get("what", "")
    if what in ("hang", "hang-in-err", "forever"):
        if first and what != "forever":
            stream = sys.stderr if what == "hang-in-err" else sys.stdout
            say(f"rank 0: {texts.get('hang', 'hang detected')}", stream)
        clock.sleep(10 * 86400)
    if what == "fail":
        say(fault.get("text", "it failed"), sys.stderr if kind == "job" else sys.stdout)
        return int(fault.get("code", "1"))
    if first:
        say(texts.get("build" if kind == "build" else "success", "done"))
    return 0


def say(text: str, stream: object = None) -> None:
    print(text, file=stream or sys.stdout, flush=True)  # type: ignore[arg-type]
