"""What comes of each answer that sbatch may give, or that gets lost: submit.sh as it is, between stand-ins.

Whatever is said: one call of sbatch is one job at most, and there are never two.
"""

import io
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.bundle.played import (
    JOB,
    NO_ACCOUNTS,
    NO_CONTROLLER,
    NOTHING,
    Answer,
    Played,
    fails,
    says,
)
from tests.bundle.test_scripts import GOLDENS, code, scripts

SUBMITTED, REFUSED, UNKNOWN = 0, 7, 13

TIMED_OUT = fails("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
NO_PARSABLE = fails("sbatch: unrecognized option '--parsable'\nTry \"sbatch --help\" for more information")
BAD_PARTITION = fails("sbatch: error: invalid partition specified: nowhere\nsbatch: error: Batch job submission failed")
EMPTY_QUEUE = says("JOBID|COMMAND")
OTHERS = says("JOBID|COMMAND", f"{JOB}|/home/u/submitted/other.slurm", "12|/bin/bash")
OURS = says("JOBID|COMMAND", "12|/x.sh", f"{JOB}|/x/submitted/@TOKEN@.slurm a b", "4712|/y.sh")
OURS_ON_GAMMA = says("CLUSTER: beta", "JOBID|COMMAND", "12|/x.sh", "CLUSTER: gamma", "JOBID|COMMAND",
                     f"{JOB}|/x/submitted/@TOKEN@.slurm")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Answers of sbatch, and of squeue (asked before, and after where sbatch gave no id), and what comes of it."""

    case: str
    sbatch: tuple[Answer, ...]
    squeue: tuple[Answer, ...] = (EMPTY_QUEUE,)
    code: int = SUBMITTED
    said: str = ""
    cluster: str = ""
    calls: int = 1
    banner: str = ""
    changes: Mapping[str, object] = field(default_factory=dict)
    sacct: tuple[Answer, ...] = ()


def chatty(*lines: str, err: str = "") -> tuple[Answer, ...]:
    return (says(*lines, err=err),)


OWN = {"script_path": "own.slurm"}

ROWS = (
    Row("SUB-01 an id", chatty("4711")),
    Row("SUB-01 a banner with digits", chatty("4711"), banner="Welcome to Stampede3\\n"),
    Row("SUB-01 a banner that is digits", chatty("4711"), banner="2026\\n-----\\n"),
    Row("SUB-01 a banner with a number of its own line", chatty("4711"), banner="Quota 93% used\\n12\\n"),
    Row("SUB-01 a banner without an end", chatty("4711"), banner="Submitted batch job 99\\n@@gen job=7"),
    Row("SUB-01 a carriage return", chatty("4711\r")),
    Row("SUB-01 a word after it", chatty("4711", "bye 12"), said="sbatch says: bye 12"),
    Row("SUB-01 dates and sizes around it", chatty("2026-05-01", "12 GB", "3.5", "4711", "0x12"), said="12 GB"),
    Row("SUB-01 two that could be it, the queue knows", chatty("12", "4711"), (EMPTY_QUEUE, OURS)),
    Row("SUB-01 two that could be it, the queue does not know", chatty("12", "4711"), code=UNKNOWN,
        said="printed: 12;4711"),
    Row("SUB-02 a cluster", chatty("4711;gamma"), cluster="gamma"),
    Row("SUB-02 a cluster, in words", chatty("Submitted batch job 4711 on cluster gamma"), cluster="gamma"),
    Row("SUB-02 several clusters asked, answer lost", (TIMED_OUT,), (EMPTY_QUEUE, OURS_ON_GAMMA), cluster="gamma"),
    Row("SUB-03 no --parsable", (NO_PARSABLE, *chatty("Using default partition main", "Submitted batch job 4711")),
        calls=2, said="sbatch says: Using default partition main"),
    Row("SUB-03 no --parsable, by its older quotes",
        (fails("sbatch: unrecognized option `--parsable'"), *chatty("Submitted batch job 4711")), calls=2),
    Row("SUB-03 no --parsable, then refused", (NO_PARSABLE, BAD_PARTITION), code=REFUSED, calls=2, said="nowhere"),
    Row("SUB-03 another option is not known", (fails("sbatch: unrecognized option '--nice'"),), code=REFUSED,
        said="--nice"),
    Row("SUB-03 advice on stderr", chatty("4711", err="Job 99 of yours is\nSubmitted batch job 98\n"),
        said="sbatch says: Job 99 of yours is"),
    Row("SUB-03 a wrapper that hides what sbatch said", (NOTHING,), (EMPTY_QUEUE, OURS)),
    Row("SUB-03 a wrapper that hides it all", (NOTHING,), code=UNKNOWN, said="no job with the token"),
    Row("SUB-03 a wrapper that fails after it was taken", (Answer(out="4711\n", err="quota: denied\n", code=1),),
        (EMPTY_QUEUE, OURS)),
    Row("SUB-05 answer lost, job there", (TIMED_OUT,), (EMPTY_QUEUE, OURS), said="Socket timed out"),
    Row("SUB-05 answer lost, job there a little later", (TIMED_OUT,), (EMPTY_QUEUE, EMPTY_QUEUE, OTHERS, OURS)),
    Row("SUB-05 answer lost, no job", (TIMED_OUT,), (OTHERS,), UNKNOWN, "no job with the token"),
    Row("SUB-05 answer lost, nobody knows", (TIMED_OUT,), (EMPTY_QUEUE, NO_CONTROLLER), UNKNOWN, "cannot be told"),
    Row("SUB-05 answer lost, the queue answers late", (TIMED_OUT,), (EMPTY_QUEUE, *[NO_CONTROLLER] * 5, OURS)),
    Row("SUB-05 no answer in time", (Answer(code=124),), (EMPTY_QUEUE, OURS)),
    Row("SUB-05 nothing but a header", (TIMED_OUT,),
        (EMPTY_QUEUE, Answer(out="CLUSTER: x\n", err="squeue: error: no\n")), UNKNOWN, "cannot be told"),
    Row("SUB-05 there before sbatch was called", (), (OURS,), calls=0),
    Row("SUB-05 the queue cannot be asked before", (), (NO_CONTROLLER,), UNKNOWN, "before submitting", calls=0),
    Row("SUB-05 words never seen before, job there", (fails("sbatch: error: The moon is full"),), (EMPTY_QUEUE, OURS)),
    Row("SUB-05 refused", (BAD_PARTITION,), code=REFUSED, said="sbatch refused: invalid partition specified: nowhere;"),
    Row("SUB-05 refused, and nobody can say that there is no job", (BAD_PARTITION,), (EMPTY_QUEUE, NO_CONTROLLER),
        UNKNOWN, "cannot be told"),
    Row("SUB-05 refused in words, and taken all the same", (BAD_PARTITION,), (EMPTY_QUEUE, OURS)),
    Row("SUB-05 the answer was lost on its way",
        (fails("sbatch: error: Batch job submission failed: Message receive failure"),),
        (EMPTY_QUEUE, EMPTY_QUEUE, OURS)),
    Row("SUB-05 words never seen before, and nobody can say that there is no job",
        (fails("sbatch: error: The moon is full"),), (EMPTY_QUEUE, NO_CONTROLLER), UNKNOWN, "cannot be told"),
    # Your own script leaves no note; accounting has the line it was submitted with
    Row("SUB-05 own script, in accounting only", (TIMED_OUT,), (EMPTY_QUEUE,), changes=OWN,
        sacct=chatty("12|sbatch x", f"{JOB}|sbatch --parsable --time=1 /x/submitted/@TOKEN@.slurm")),
    Row("SUB-05 own script, not in accounting", (TIMED_OUT,), (EMPTY_QUEUE,), UNKNOWN, "no job with", changes=OWN,
        sacct=chatty("12|sbatch x")),
    Row("SUB-05 own script, no accounting", (TIMED_OUT,), (EMPTY_QUEUE,), UNKNOWN, "cannot be told", changes=OWN,
        sacct=(NO_ACCOUNTS,)),
    Row("SUB-05 own script, a site without SubmitLine", (TIMED_OUT,), (EMPTY_QUEUE,), UNKNOWN, "SubmitLine",
        changes=OWN, sacct=(fails('sacct: error: Invalid field requested: "SubmitLine"'),)),
)  # fmt: skip


@pytest.mark.req("R25", "B20")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case)
def test_what_comes_of_an_answer_of_sbatch(played: Played, row: Row) -> None:
    played.bundle(**row.changes)
    (played.folder / "banner").write_text(row.banner)
    played.play("sbatch", *row.sbatch)
    played.play("squeue", *row.squeue)
    played.play("sacct", *row.sacct)
    ran = played.run("submit.sh")
    assert ran.code == row.code, ran.said
    assert row.said in ran.said
    assert len(played.calls("sbatch")) == row.calls
    assert played.calls("scancel") == []
    if row.code == SUBMITTED:
        assert played.kept("job.id") == JOB
        assert played.kept("job.cluster") == row.cluster
        assert played.kept("job.out") == str(played.work / f"slurm-{JOB}.out")
        assert (int(played.kept("job.since")) > 0) == bool(row.calls)
    else:
        assert played.kept("job.id") == ""
        assert bool(played.kept("job.token")) == (row.code == UNKNOWN)


def lost(played: Played, **changes: object) -> None:
    """A submission whose answer got lost, and nobody could say more."""
    played.bundle(**changes)
    played.play("squeue", EMPTY_QUEUE, NO_CONTROLLER)
    played.play("sacct", NO_ACCOUNTS)
    played.play("sbatch", TIMED_OUT)
    assert played.run("submit.sh").code == UNKNOWN
    played.play("sbatch")


@pytest.mark.req("B20")
def test_the_next_run_looks_again_before_it_submits(played: Played) -> None:
    lost(played)
    token = played.kept("job.token")
    played.play("squeue", OURS)
    assert played.run("submit.sh").code == SUBMITTED
    assert played.kept("job.id") == JOB
    assert played.kept("job.token") == token
    assert len(played.calls("sbatch")) == 1


@pytest.mark.req("B20")
def test_the_next_run_does_not_submit_where_it_cannot_look(played: Played) -> None:
    lost(played)
    played.play("squeue", NO_CONTROLLER)
    assert played.run("submit.sh").code == UNKNOWN
    assert len(played.calls("sbatch")) == 1


@pytest.mark.req("B20")
def test_a_job_that_has_run_and_left_the_queue_is_found_by_its_own_note(played: Played) -> None:
    lost(played)
    (played.scripts / "submitted" / f"{played.kept('job.token')}.slurm.ran").write_text(f"{JOB}\n")
    played.play("squeue", OTHERS)
    assert played.run("submit.sh").code == SUBMITTED
    assert played.kept("job.id") == JOB
    assert len(played.calls("sbatch")) == 1


@pytest.mark.req("B20")
def test_where_all_say_that_there_is_no_job_it_is_submitted_by_the_same_token(played: Played) -> None:
    lost(played)
    token = played.kept("job.token")
    played.play("squeue", OTHERS)
    played.play("sbatch", says("4712"))
    assert played.run("submit.sh").code == SUBMITTED
    assert played.kept("job.id") == "4712"
    assert played.kept("job.token") == token


@pytest.mark.req("B20")
def test_your_own_script_is_not_submitted_again_while_accounting_cannot_say(played: Played) -> None:
    lost(played, **OWN)
    played.play("squeue", OTHERS)
    assert played.run("submit.sh").code == UNKNOWN
    assert len(played.calls("sbatch")) == 1
    cleaned = played.run("cleanup.sh")
    assert cleaned.code == 0, cleaned.said
    assert played.kept("job.token") == ""


@pytest.mark.req("B20", "B9")
def test_from_submit_does_not_forget_a_submission_whose_answer_got_lost(played: Played) -> None:
    lost(played)
    ran = played.run("run_all.sh", "--from", "submit")
    assert ran.code == 2
    assert "give it up with ./cleanup.sh" in ran.said
    assert played.kept("job.token")
    assert len(played.calls("sbatch")) == 1


@pytest.mark.req("B9")
def test_after_a_refusal_there_is_nothing_to_look_for(played: Played) -> None:
    played.bundle()
    played.play("sbatch", BAD_PARTITION, says("4712"))
    played.play("squeue", EMPTY_QUEUE)
    first = played.run("submit.sh")
    assert first.code == REFUSED
    assert "Nothing was submitted" in first.said
    assert played.run("submit.sh").code == SUBMITTED


@dataclass(frozen=True)
class Cut:
    """Where the line breaks, what has become of it by then, and what the next run does."""

    case: str
    ssh: Answer
    taken: bool
    squeue: Callable[[], tuple[Answer, ...]] = lambda: (EMPTY_QUEUE,)


CUTS = (
    Cut("before the script", Answer("cut-before"), taken=False),
    Cut("host down", Answer("down"), taken=False),
    Cut("in the script", Answer("cut-upload", "900"), taken=False),
    Cut("in the functions of the script", Answer("cut-upload", "9000"), taken=False),
    Cut("after the reply of sbatch", Answer("cut-reply"), taken=True),
    Cut("in the answer", Answer("cut-answer", "40"), taken=True),
    Cut("ssh fails with 1", Answer("cut-answer", "1"), taken=True),
)


@pytest.mark.req("B20", "R55")
@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.case)
def test_a_line_that_breaks_while_submitting_makes_no_second_job(played: Played, cut: Cut) -> None:
    played.bundle()
    played.play("ssh", cut.ssh, NOTHING)
    played.play("sbatch", says(JOB))
    played.play("squeue", EMPTY_QUEUE)
    ran = played.run("submit.sh")
    assert ran.code == UNKNOWN, ran.said
    assert "Nothing was concluded; run ./submit.sh again" in ran.said
    assert played.kept("job.id") == ""
    assert len(played.calls("sbatch")) == int(cut.taken)
    assert played.run("submit.sh").code == SUBMITTED
    assert played.kept("job.id") == JOB
    assert len(played.calls("sbatch")) == 1


@pytest.mark.req("B20")
def test_wherever_the_line_breaks_on_the_way_up_no_half_of_the_files_is_submitted(played: Played) -> None:
    played.bundle()
    played.play("ssh", Answer("goes-on"))
    played.play("sbatch", says(JOB))
    played.play("squeue", EMPTY_QUEUE)
    played.run("submit.sh")
    played.wait_for(played.path(played.kept("job.token")).with_suffix(".slurm.id"))
    sent = (played.folder / "sent").read_bytes()
    begin = sent.index(b"recipes/job.slurm\0")
    with tarfile.open(fileobj=io.BytesIO(sent[begin:])) as archive:
        ends = [begin + member.offset for member in archive.getmembers()[1:]]
        ends.append(begin + archive.offset)
    (played.folder / "calls").unlink()
    time.sleep(0.5)  # what went on there ends
    shutil.rmtree(played.scripts)
    for end in (begin + 700, *ends):
        played.play("ssh", Answer("cut-upload", str(end)))
        assert played.run("submit.sh").code == UNKNOWN
        assert played.calls("sbatch") == []
        assert not played.scripts.exists()


def hold_sbatch(played: Played) -> Path:
    """A call whose line broke, and whose sbatch is still at it until the file is there that this gives."""
    played.bundle()
    played.play("ssh", Answer("goes-on"), NOTHING)
    asked, go = played.folder / "asked", played.folder / "go"
    played.play("sbatch", Answer(f"{JOB}\n", hook=f"touch '{asked}'; until [ -e '{go}' ]; do /bin/sleep 0.1; done"))
    played.play("squeue", EMPTY_QUEUE)
    assert played.run("submit.sh").code == UNKNOWN
    played.wait_for(asked)
    return go


@pytest.mark.req("B20")
def test_a_call_that_is_still_at_work_there_is_waited_for(played: Played) -> None:
    go = hold_sbatch(played)
    second = played.start("submit.sh")
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(timeout=2)
    go.touch()
    assert second.wait(timeout=60) == SUBMITTED
    assert played.kept("job.id") == JOB
    assert len(played.calls("sbatch")) == 1


def without_locks(played: Played) -> None:
    """The file system has no locks, as Lustre has none unless it is told to."""
    played.put(
        played.folder / "there" / "flock", "#!/bin/bash\necho 'flock: 9: Function not implemented' >&2\nexit 71\n"
    )


@pytest.mark.req("B20")
def test_without_locks_a_call_that_is_still_at_work_there_keeps_the_next_from_submitting(played: Played) -> None:
    without_locks(played)
    go = hold_sbatch(played)
    second = played.run("submit.sh")
    assert second.code == UNKNOWN
    assert "an earlier call of this step is still at work there" in second.said
    cleaned = played.run("cleanup.sh")
    assert cleaned.code == UNKNOWN
    assert "Nothing was cancelled or removed" in cleaned.said
    go.touch()
    played.wait_for(played.path(f"{played.kept('job.token')}").with_suffix(".slurm.busy"), there=False)
    assert played.run("submit.sh").code == SUBMITTED
    assert played.kept("job.id") == JOB
    assert len(played.calls("sbatch")) == 1


@pytest.mark.req("B20")
def test_without_locks_that_of_a_call_that_was_killed_is_broken_after_a_while(played: Played) -> None:
    without_locks(played)
    played.bundle()
    played.keep(job_token="t1")
    busy = played.path("t1").with_suffix(".slurm.busy")
    busy.mkdir()
    played.play("sbatch", says(JOB))
    played.play("squeue", EMPTY_QUEUE)
    assert played.run("submit.sh").code == UNKNOWN
    os.utime(busy, (time.time() - 1800,) * 2)
    assert played.run("submit.sh").code == SUBMITTED
    assert not busy.exists()


@pytest.mark.req("B20", "R25")
@pytest.mark.parametrize(("code", "end"), [("255", 0), ("1", 0), ("0", 0)])
def test_the_exit_code_of_ssh_is_not_that_of_what_ran_there(played: Played, code: str, end: int) -> None:
    played.bundle()
    played.play("ssh", Answer(code))
    played.play("sbatch", says(JOB))
    played.play("squeue", EMPTY_QUEUE)
    assert played.run("submit.sh").code == end


@pytest.mark.req("B9")
def test_what_was_submitted_is_not_submitted_again(played: Played) -> None:
    played.bundle()
    played.submitted()
    ran = played.run("submit.sh")
    assert ran.code == SUBMITTED
    assert "was submitted before" in ran.said
    assert played.calls("ssh") == []


def test_sbatch_is_asked_from_the_work_folder_by_a_path_with_the_token(played: Played) -> None:
    played.bundle()
    where = played.folder / "where"
    played.play("sbatch", Answer(f"{JOB}\n", hook=f"pwd >'{where}'; env >'{where}.env'"))
    played.play("squeue", EMPTY_QUEUE)
    assert played.run("submit.sh").code == SUBMITTED
    path = played.scripts / "submitted" / f"{played.kept('job.token')}.slurm"
    assert where.read_text().strip() == str(played.work)
    asked = str(path).replace(" ", "\\ ")
    assert played.calls("sbatch") == [f"sbatch --parsable {asked}"]
    assert path.read_text() == (played.out / "recipes" / "job.slurm").read_text()
    assert f"GEN_NOTE={path}.ran" in (played.folder / "where.env").read_text()


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_no_script_relies_on_what_sites_lack_or_slurm_moves(golden: Path) -> None:
    for path in scripts(golden):
        text = code(path.read_text())
        assert not re.search(r"--(me|only-job-state|json|yaml)\b", text), path
        assert not re.search(r"sbatch[^|\n]*2>&1", text), path
        if path.suffix == ".slurm":  # Slurm runs a copy of it, from its spool
            assert not re.search(r"BASH_SOURCE|dirname", text), path
