"""Measures what a bundle costs when one process makes many, against plain writing of the same bytes.

Each number of bundles is measured in processes of its own (this module, run as a program), since the first bundle of a
process pays for reading the templates. In such a process some bundles are made, then their plans are rendered and
written again, then their bytes are written plainly, and so on: what else the disk has to do slows down all three.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeVar

from slurm_bundle.bundle import write_bundle
from slurm_bundle.making import make_bundles
from slurm_bundle.render import render_bundle
from tests.bench.start import ROOT, make_example
from tests.bench.table import Options, Part, Verdict

T = TypeVar("T")

FEW = 100
TURN = 20
ROUNDS = 3


def write_plainly(files: Mapping[str, bytes], folder: Path) -> int:
    """The least that Python can do to put these bytes into these files; gives their number."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return len(files)


def timed(things: Iterable[T]) -> tuple[list[T], float]:
    """What comes out of an iterator, and the seconds that it took for each."""
    began = time.perf_counter()
    found = list(things)
    return found, (time.perf_counter() - began) / len(found)


def time_turns(count: int, folder: Path) -> Iterator[tuple[float, float, float]]:
    """Seconds a bundle, for some bundles each: to make it, to render and write it, to write its bytes plainly."""
    wanted = {folder / f"made/{number}": {"account": f"proj{number}"} for number in range(count)}
    making = make_bundles(make_example(folder), wanted)
    for _ in range(0, count, TURN):
        made, make = timed(islice(making, TURN))
        _, again = timed(write_bundle(render_bundle(one.plan), folder / "again" / one.folder.name) for one in made)
        texts = {one.folder.name: {file.path: file.data for file in render_bundle(one.plan)} for one in made}
        _, plain = timed(write_plainly(files, folder / "plain" / name) for name, files in texts.items())
        yield make, again, plain


def measure_many(options: Options) -> Part:
    few, many = min(FEW, options.bundles - 1), options.bundles
    turns: dict[int, list[tuple[float, float, float]]] = {count: [] for count in (1, few, many)}
    rounds = min(options.rounds, ROUNDS)
    for _ in range(rounds):
        for count in turns:
            command = [sys.executable, "-m", "tests.bench.many", str(count)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            turns[count] += json.loads(done.stdout)
    middle = {count: [statistics.median(kind) for kind in zip(*turns[count], strict=True)] for count in turns}
    return Part(
        title=f"many bundles in one process; medians of {rounds} rounds",
        headings=("ms a bundle", "make", "render+write", "plain"),
        rows=[
            (f"of {count:,} bundle{'s' if count > 1 else ''}", *(f"{took * 1000:.2f}" for took in middle[count]))
            for count in turns
        ],
        verdicts=[
            Verdict(f"render+write {many:,} / plain", statistics.median(a / p for _, a, p in turns[many]), 2),
            Verdict(f"make one of {many:,} / one of {few:,}", middle[many][0] / middle[few][0], 1.1),
        ],
    )


if __name__ == "__main__":
    place = tempfile.mkdtemp()
    try:
        print(json.dumps(list(time_turns(int(sys.argv[1]), Path(place)))))
    finally:
        shutil.rmtree(place)
