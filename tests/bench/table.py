"""Turns what a part has measured into lines of 80 columns."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How often each thing is measured, and how many bundles one process makes."""

    rounds: int
    bundles: int


@dataclass(frozen=True)
class Verdict:
    """A ratio, and the most that it may be."""

    name: str
    ratio: float
    limit: float


@dataclass(frozen=True)
class Part:
    """What was measured, in rows of texts below their headings, and what is to be thought of it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    verdicts: Sequence[Verdict]


def show(name: str, part: Part) -> None:
    print(f"== {name}: {part.title}\n")
    for row in (part.headings, *part.rows):
        print((f"{row[0]:41}" + "".join(f"{text:>13}" for text in row[1:])).rstrip())
    print(f"\n{'target':48}{'ratio':>10}{'at most':>10}")
    for verdict in part.verdicts:
        met = "met" if verdict.ratio <= verdict.limit else "NOT MET"
        print(f"{verdict.name:48}{verdict.ratio:10.2f}{verdict.limit:10.2f}   {met}")
    print(flush=True)
