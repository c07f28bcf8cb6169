"""Runs one stand-in: finds it by its name, lets the faults of the scenario strike, and records the call."""

import _signal
import os
import sys
import time

from slurm_bundle.rehearsal.standins import faults
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.records import json_text

# The names that this program is called by: the module that plays the part, and its function.
PARTS = {
    "sleep": ("clock", "run_sleep"), "date": ("clock", "run_date"), "timeout": ("clock", "run_timeout"),
    "ssh": ("ssh", "run"), "scp": ("scp", "run"),
    "sbatch": ("sbatch", "run"), "squeue": ("squeue", "run"), "sacct": ("sacct", "run"), "scancel": ("scancel", "run"),
    "scontrol": ("scontrol", "run"), "sinfo": ("sinfo", "run"), "srun": ("srun", "run"), "salloc": ("salloc", "run"),
    "tmux": ("tmux", "run"), "hostname": ("small", "run_hostname"), "module": ("small", "run_nothing"),
    "sudo": ("small", "run_nothing"), "nvidia-smi": ("small", "run_nvidia_smi"), "play": ("play", "run"),
    "keeper": ("keeper", "run"),
}  # fmt: skip
# On a cluster these are no commands at all, or tell nothing of what a bundle does.
UNRECORDED = ("sleep", "date", "timeout", "hostname", "keeper", "play")
ON_SIDE = {
    "local": ("ssh", "scp", "sleep", "date"),
    "login": ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "salloc", "ssh", "scp", "sleep",
              "date", "timeout", "hostname", "module"),
    "node": ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "salloc", "ssh", "scp", "sleep",
             "date", "timeout", "hostname", "module", "sudo", "nvidia-smi"),
}  # fmt: skip


def main(root: str, side: str, name: str, words: list[str]) -> None:
    """Play the part of `name`, and exit with its code."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    place = Place(root, side)
    if name != "keeper" and not place.is_alive():
        raise SystemExit(f"{name}: the rehearsal in {root} is over")
    began = time.time()
    code = play(place, name, words)
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads it any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = code or 141
    if name not in UNRECORDED:
        record(place, name, words, began, code)
    os._exit(code)


def play(place: Place, name: str, words: list[str]) -> int:
    """The code that the call ends with, whether a fault has struck or not."""
    try:
        fault = faults.strike(place, name, words)
        if fault is None:
            return perform(place, name, words)
        return faults.suffer(place, fault, lambda: perform(place, name, words))
    except StopError as stop:
        sys.stdout.flush()
        for line in stop.lines:
            complain(line)
        return stop.code


def perform(place: Place, name: str, words: list[str]) -> int:
    if name not in PARTS:
        from slurm_bundle.rehearsal.standins.clock import find_real

        find_real(place, name, words)
    module, function = PARTS[name]
    part = __import__(f"slurm_bundle.rehearsal.standins.{module}", fromlist=[function])
    code: int = getattr(part, function)(place, words)
    return code


def record(place: Place, name: str, words: list[str], began: float, code: int) -> None:
    """Add the call to events.jsonl: one line, in one write."""
    from slurm_bundle.rehearsal.standins.clock import Clock

    ours, theirs, factor = Clock(place).read()
    event = {
        "time": round(theirs + (began - ours) * factor, 1),
        "seconds": round(time.time() - began, 3),
        "side": place.side,
        "command": name,
        "arguments": words,
        "folder": os.getcwd(),
        "code": code,
        **place.notes,
    }
    line = json_text(event) + "\n"
    file = os.open(f"{place.root}/events.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
