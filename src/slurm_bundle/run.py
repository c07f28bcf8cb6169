"""Turns a bundle into a run of it on this machine: its own scripts do the work, what they say is shown."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO


def state_folder(folder: Path) -> Path:
    """Where the record of the run is: $GEN_STATE_DIR where that is set, else .run in the bundle."""
    return Path(os.environ.get("GEN_STATE_DIR") or folder / ".run")


def run_bundle(folder: Path, options: Sequence[str], *, out: TextIO = sys.stderr) -> int:
    """Run run_all.sh and give its exit code; each line that it says is shown with the minutes and seconds so far.

    An interrupt reaches the scripts by the terminal, and they end by themselves; here it is only waited for them.
    """
    began = time.monotonic()
    with subprocess.Popen(
        ["bash", str(folder / "run_all.sh"), *options], stderr=subprocess.PIPE, text=True, errors="replace"
    ) as running:
        assert running.stderr is not None
        while True:
            try:
                for line in running.stderr:
                    minutes, seconds = divmod(int(time.monotonic() - began), 60)
                    print(f"{minutes:3d}:{seconds:02d}  {line.rstrip()}", file=out, flush=True)
                code = running.wait()
            except KeyboardInterrupt:
                continue
            return code if code >= 0 else 128 - code


def read_report(folder: Path) -> dict[str, Any] | None:
    """The report of the last run, None where there is none."""
    try:
        report: dict[str, Any] = json.loads((state_folder(folder) / "report.json").read_text())
    except (OSError, ValueError):
        return None
    return report
