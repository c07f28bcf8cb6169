"""The parts of the stand-ins that are plain text in, text out; what they say as commands is in test_conformance.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bundle.rehearsal import standins
from slurm_bundle.rehearsal.standins import hostlist, times
from slurm_bundle.rehearsal.standins.environment import fill_pattern
from slurm_bundle.rehearsal.standins.getopt import Parser
from slurm_bundle.rehearsal.standins.jobs import Job
from slurm_bundle.rehearsal.standins.main import PARTS
from slurm_bundle.rehearsal.standins.options import read_directives
from slurm_bundle.rehearsal.standins.place import StopError
from slurm_bundle.rehearsal.standins.records import json_text, load_record, store_record
from slurm_bundle.rehearsal.standins.scheduler import judge_dependency
from slurm_bundle.rehearsal.standins.squeue import read_layout, show

FOLDER = Path(standins.__file__).parent
# Each takes milliseconds to import, and a rehearsal starts dozens of stand-ins.
SLOW = {"argparse", "contextlib", "dataclasses", "enum", "json", "pathlib", "re", "shutil", "subprocess", "typing"}


@pytest.mark.parametrize("part", sorted({module for module, _ in PARTS.values()} - {"keeper"}))
def test_a_stand_in_imports_nothing_that_takes_long(part: str) -> None:
    script = (
        f"import sys; sys.path.append({str(FOLDER.parents[2])!r}); import slurm_bundle.rehearsal.standins.main; "
        f"import slurm_bundle.rehearsal.standins.{part}; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-ISE", "-c", script], capture_output=True, text=True, check=True)
    assert SLOW & set(done.stdout.split()) == set()


@given(st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), st.text(st.characters(codec="utf-8"))))
def test_a_record_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, record: dict[str, str]) -> None:
    path = str(tmp_path_factory.getbasetemp() / "record")
    store_record(path, {name: value.replace("\0", "") for name, value in record.items()})
    assert load_record(path) == {name: value.replace("\0", "") for name, value in record.items()}


@given(st.recursive(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])) | st.integers(), st.lists))
def test_json_is_json(value: object) -> None:
    assert json.loads(json_text(value)) == value


def test_directives_are_read_as_slurm_reads_them() -> None:
    script = (
        "#!/bin/bash\n"
        "#SBATCH --job-name=a#b -n 2 # a comment\n"
        "\n"
        "# --mem=1G\n"
        "#SBATCH --comment=\"two words\" --output='a b'.txt --error=a\\ b\n"
        "##SBATCH --nodes=2\n"
        " # still a comment\n"
        "#SBATCH --time=5\n"
        "echo\n"
        "#SBATCH --nodes=3\n"
    )
    words = ["--job-name=a", "--comment=two words", "--output=a b.txt", "--error=a b", "--time=5"]
    assert read_directives(script) == words


def test_an_open_quote_in_a_directive_is_refused() -> None:
    with pytest.raises(StopError):
        read_directives('#!/bin/sh\n#SBATCH --comment="open\n')


def test_options_are_read_as_getopt_reads_them() -> None:
    options = Parser("x", "time=t hold.H nice? nodes=N").parse(["-t5", "--nod", "2", "-HN3", "--nice", "a", "-t", "6"])
    assert options.given == [("time", "5"), ("nodes", "2"), ("hold", ""), ("nodes", "3"), ("nice", "")]
    assert options.rest == ["a", "-t", "6"]
    mixed = Parser("x", "time=t hold.H", permute=True).parse(["a", "-t", "6", "--", "-H"])
    assert (mixed.given, mixed.rest) == ([("time", "6")], ["a", "-H"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 300), ("0:30", 60), ("1:0:0", 3600), ("1-2", 93600), ("1-2:3", 93780), ("1-0:0:1", 86460), ("x", None)],
)
def test_a_time_limit_is_read(text: str, seconds: int | None) -> None:
    assert times.read_limit(text) == seconds


@pytest.mark.parametrize(("seconds", "short"), [(2, "0:02"), (600, "10:00"), (3600, "1:00:00"), (90000, "1-01:00:00")])
def test_a_time_is_shown_as_squeue_does(seconds: int, short: str) -> None:
    assert times.show_short(seconds) == short


@given(st.lists(st.integers(0, 120), min_size=1, max_size=20, unique=True))
def test_a_hostlist_names_the_hosts_that_it_was_made_of(numbers: list[int]) -> None:
    names = [f"node{number:03d}" for number in numbers]
    assert hostlist.expand(hostlist.compress(names)) == names
    assert hostlist.expand_counts(hostlist.counts(numbers)) == numbers


def test_names_of_logs_are_filled_in() -> None:
    job = Job(id="7", name="a b", user="me", array="5", task="3")
    assert fill_pattern("%x-%j_%A_%a.%u.%%.%4j", job) == "a b-7_5_3.me.%.0007"
    assert fill_pattern("s%s_%t_%N.txt", job, step="2", node="n1", rank=4) == "s2_4_n1.txt"


def test_columns_are_as_wide_as_the_format_says() -> None:
    fields = read_layout("%.5i|%5j|%.2j%t")
    assert show(fields, ["7", "ab", "abc", "R"]) == "    7|ab   |abR"


def test_a_dependency_is_met_waited_for_or_lost() -> None:
    passed, failed, running = Job(id="1", state="COMPLETED"), Job(id="2", state="FAILED"), Job(id="3", state="RUNNING")

    def judge(text: str) -> str:
        return judge_dependency(Job(id="9", dependency=text), [passed, failed, running])

    assert judge("afterok:1") == judge("afternotok:2") == judge("afterany:1:2") == judge("") == "met"
    assert judge("afterok:1,afterany:3") == judge("afterok:3?afterok:2") == "waiting"
    assert judge("afterok:2") == judge("afterok:3,afterok:2") == "never"
