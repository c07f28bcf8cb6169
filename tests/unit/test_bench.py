"""scripts/bench runs, and prints a row for each thing; what it measures is looked at by people."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([ROOT / "scripts" / "bench", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        (
            "start",
            [
                *("gen --help / import", "gen validate / import", "gen bundle --no-lint / import"),
                *("gen bundle --lint / gen bundle --no-lint",),
            ],
        ),
        ("many", ["render+write 3 / plain", "make one of 3 / one of 2"]),
    ],
)
def test_each_ratio_is_printed_with_its_target_and_whether_it_is_met(part: str, rows: list[str]) -> None:
    ran = bench(part, "--rounds", "1", "--bundles", "3")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"== {part}: ")
    assert [line for line in ran.stdout.splitlines() if len(line) > 80] == []
    verdicts = re.findall(r"^(\S.*?) +\d+\.\d\d +\d+\.\d\d   (?:met|NOT MET)$", ran.stdout, re.MULTILINE)
    assert verdicts == rows


def test_a_part_that_is_not_there_is_wrong_use_and_help_names_those_that_are() -> None:
    assert bench("frobnicate").returncode == 2
    told = bench("--help").stdout
    assert re.findall(r"^ {8}(\w+)  |^Parts:  (\w+) ", told, re.MULTILINE)
