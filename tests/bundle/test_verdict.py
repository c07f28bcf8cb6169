"""The verdict on a job as a table: every combination of what accounting, exit file and log may say.

Passed means proven, and what nobody knows is never a verdict.
"""

import itertools
import subprocess
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from tests.bundle.played import JOB, Accounted, Controlled, Played, Queued

# Sources the scripts as monitor.sh does, and gives the answers of the last look from a line of its stdin each.
JUDGE = """
set -euo pipefail
bundle=$1 KIND=$2
for part in config lib remote watch facts proof verdict; do . "$bundle/$part.sh"; done
answer() {
    case $1 in
        exit) echo "$FILE" ;; success) echo "$SUCCESS" ;; failure) echo "$FAILURE" ;; unread) echo "$UNREAD" ;;
    esac
}
kept() { echo 4711; }
end=ended source=sacct
while IFS=';' read -r state_there exit_there FILE SUCCESS FAILURE UNREAD; do
    judge "$KIND"
    [ "$KIND" = job ] || judge_build
    echo "$status $proven $(exit_code "$status")"
done
"""

STATES = {
    "COMPLETED": "",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
    "TIMEOUT": "TIMEOUT",
    "DEADLINE": "TIMEOUT",
    "OUT_OF_MEMORY": "OUT_OF_MEMORY",
    "NODE_FAIL": "ERROR",
    "BOOT_FAIL": "ERROR",
    "PREEMPTED": "ERROR",
    "REVOKED": "ERROR",
    "": "UNKNOWN",
}
CODES = {
    "PASSED": 0,
    "FAILED": 1,
    "BUILD_FAILED": 6,
    "TIMEOUT": 8,
    "OUT_OF_MEMORY": 10,
    "CANCELLED": 11,
    "ERROR": 12,
    "UNKNOWN": 13,
}
EXIT_CODES = ("0:0", "7:0", "0:9", "")
EXIT_FILES = ("0 proven", "0 unproven", "7 unproven", "7 proven", "none", "what is this", "")
LOG = "/x/slurm.out"


@dataclass(frozen=True)
class Facts:
    """What is known of the end; `success`, `failure`, `unread`: a line of the log, or nothing."""

    state: str
    exit_code: str
    exit_file: str
    success: str
    failure: str
    unread: str


def all_facts(*, patterns: bool) -> list[Facts]:
    found = ("", "all passed") if patterns else ("",)
    rows = itertools.product(STATES, EXIT_CODES, EXIT_FILES, found, ("", "2 FAILED"), ("", LOG))
    return [Facts(*row) for row in rows if row[0] == "COMPLETED" or not row[5]]


def expect(facts: Facts, *, kind: str, own: bool, patterns: bool) -> tuple[str, bool]:
    """The status, and whether it is proven."""
    if facts.state != "COMPLETED":
        return STATES[facts.state], False
    if facts.exit_code not in ("0:0", "") or facts.failure:
        return "FAILED", False
    if facts.unread:
        return "UNKNOWN", False
    if kind == "job" and patterns and not facts.success:
        return "FAILED", False
    if kind == "job" and own:
        return "PASSED", bool(facts.success)
    by_file = {"0 proven": "PASSED", "": "UNKNOWN"}.get(facts.exit_file, "FAILED")
    return by_file, by_file == "PASSED"


SPECS: dict[str, dict[str, object]] = {
    "one process": {},
    "own script": {"script_path": "own.slurm"},
    "build": {"build_project": True, "build_command": "make"},
}


@pytest.mark.req("B27", "R54", "R27")
@pytest.mark.parametrize("patterns", [False, True], ids=["no patterns", "patterns"])
@pytest.mark.parametrize("name", SPECS)
def test_every_combination_of_facts_has_its_verdict(played: Played, name: str, patterns: bool) -> None:
    given = {"success_patterns": ["passed"]} if patterns else {}
    played.bundle(failure_patterns=["FAILED"], **SPECS[name], **given)
    kind = "build" if name == "build" else "job"
    table = all_facts(patterns=patterns)
    lines = "".join(";".join(astuple(facts)) + "\n" for facts in table)
    done = subprocess.run(
        ["bash", "-c", JUDGE, "x", played.out, kind], input=lines, capture_output=True, text=True, check=True
    )
    verdicts = [line.split() for line in done.stdout.splitlines()]
    assert len(verdicts) == len(table)
    for facts, (status, proven, code) in zip(table, verdicts, strict=True):
        wanted, certain = expect(facts, kind=kind, own=name == "own script", patterns=patterns)
        if kind == "build" and wanted in ("FAILED", "OUT_OF_MEMORY", "CANCELLED", "TIMEOUT"):
            wanted = "BUILD_FAILED"
        assert (status, proven == "yes") == (wanted, certain), facts
        assert int(code) == CODES[status], facts
        if status == "PASSED":
            assert facts.state == "COMPLETED"
            assert facts.exit_file == "0 proven" or name == "own script", facts
            assert proven == "yes" or (name == "own script" and not patterns), facts


FACTS = """
set -euo pipefail
bundle=$1
for part in config lib remote watch facts; do . "$bundle/$part.sh"; done
while IFS=';' read -r rows control queue exit_file; do
    printf '@@gen %s\\n' "queue=$queue" "control=$control" "exit=$exit_file" >"$state/answers"
    for row in $rows; do printf '@@gen row=%s\\n' "$row" >>"$state/answers"; done
    read_facts job
    echo "$source;$state_there;$exit_there"
done
"""

ENDS = {"COMPLETED", "FAILED", "NODE_FAIL"}


@pytest.mark.req("R54")
def test_of_the_sources_that_tell_an_end_the_best_one_counts(played: Played) -> None:
    played.bundle()
    played.submitted()
    sacct = ("", "RUNNING", "FAILED", "NODE_FAIL RUNNING", "NODE_FAIL COMPLETED")
    control = ("", "RUNNING", "COMPLETED")
    queue = ("gone", "FAILED")
    files = {"none": "", "0 unproven": "COMPLETED", "7 unproven": "FAILED", "?": ""}
    table = list(itertools.product(sacct, control, queue, files))
    lines = ""
    for row, word, listed, file in table:
        rows = " ".join(f"{JOB}|{state}|1:2|00:01|n1" for state in row.split())
        lines += f"{rows};{word and word + '|3:4|00:01|n1'};{listed}|None|x|n1;{file}\n"
    done = subprocess.run(
        ["bash", "-c", FACTS, "x", played.out],
        input=lines, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for (row, word, listed, file), told in zip(table, done.stdout.splitlines(), strict=True):
        last = row.split()[-1] if row else ""
        known = (("sacct", last), ("scontrol", word), ("squeue", listed), ("exit", files[file]))
        source, state = next(((name, end) for name, end in known if end in ENDS), ("", ""))
        noted = f"{file[0]}:0" if files[file] == state else ""  # squeue itself tells no exit code
        code = {"sacct": "1:2", "scontrol": "3:4", "squeue": noted, "exit": noted}.get(source, "")
        assert told == f"{source};{state};{code}", (row, word, listed, file)


@pytest.mark.req("B27")
@pytest.mark.parametrize(
    ("exit_file", "log", "code", "said", "looks"),
    [
        ("0 proven", "all passed\n", 0, "every task left its mark", 1),
        ("0 unproven", "all passed\n", 1, "left no mark of having run", 1),
        (None, "all passed\n", 1, "left no mark of having run", 3),
        ("0 proven", "nothing\n", 1, "none of the success patterns", 3),
        ("0 proven", None, 1, "", 3),
        ("0 proven", "2 FAILED\nall passed\n", 1, "its log says: 2 FAILED", 1),
    ],
)
def test_completed_is_not_believed_and_a_slow_file_system_is_waited_for(
    played: Played, exit_file: str | None, log: str | None, code: int, said: str, looks: int
) -> None:
    played.bundle(success_patterns=["passed"], failure_patterns=["FAILED"])
    played.submitted()
    prepare_completed(played)
    if exit_file is not None:
        played.write_exit(exit_file)
    log_file = played.work / f"slurm-{JOB}.out"
    log_file.unlink() if log is None else log_file.write_text(log)
    ran = played.run("monitor.sh")
    assert ran.code == code, ran.said
    assert said in ran.said
    assert len(played.calls("ssh")) == looks


def prepare_completed(played: Played) -> None:
    played.play("squeue", Queued("COMPLETED"))
    played.play("sacct", Accounted("COMPLETED"))
    played.play("scontrol", Controlled("COMPLETED"))


def make_stale(path: Path, text: str) -> None:
    path.write_text(text)
    subprocess.run(["touch", "-d", "2020-01-01", path], check=True)


@pytest.mark.req("B27")
def test_what_an_older_job_with_this_id_has_left_proves_nothing(played: Played) -> None:
    played.bundle()
    played.submitted()
    prepare_completed(played)
    make_stale(played.scripts / "log" / f"job.{JOB}.exit", "0 proven\n")
    assert played.run("monitor.sh").code == 1
    assert "left no mark of having run" in played.kept("reason")


@pytest.mark.req("B27")
def test_the_log_of_an_older_job_with_this_id_proves_nothing(played: Played) -> None:
    played.bundle(script_path="own.slurm", success_patterns=["passed"])
    played.submitted()
    prepare_completed(played)
    make_stale(played.work / f"slurm-{JOB}.out", "all passed\n")
    assert played.run("monitor.sh").code == 1
    played.write_log("all passed\n")
    (played.out / ".run" / "ended").unlink()
    assert played.run("monitor.sh").code == 0


@pytest.mark.req("B27")
def test_where_the_marks_cannot_be_seen_nothing_is_concluded(played: Played) -> None:
    played.bundle()
    played.submitted()
    prepare_completed(played)
    (played.scripts / "log").rmdir()
    ran = played.run("monitor.sh")
    assert ran.code == 13
    assert "cannot be seen" in ran.said
    assert played.kept("ended") == ""


@pytest.mark.req("B27")
def test_where_a_log_cannot_be_read_nothing_is_concluded(played: Played) -> None:
    played.bundle(success_patterns=["passed"], hang_patterns=[])
    played.submitted()
    prepare_completed(played)
    played.write_exit("0 proven")
    (played.work / f"slurm-{JOB}.out").unlink()
    (played.work / f"slurm-{JOB}.out").mkdir()
    ran = played.run("monitor.sh")
    assert ran.code == 13
    assert f"slurm-{JOB}.out cannot be read" in ran.said


def test_a_trouble_of_the_step_itself_is_no_verdict(played: Played) -> None:
    played.bundle()
    played.submitted()
    prepare_completed(played)
    played.put(played.folder / "here" / "date", '#!/bin/bash\n[ "$*" != +%s ] || exit 1\n')
    ran = played.run("monitor.sh")
    assert ran.code == 13
    assert "stopped by a trouble of its own" in ran.said
    assert played.kept("status") == ""
