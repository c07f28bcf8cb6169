"""What comes of each answer that Slurm may give while a job is watched: monitor.sh as it is, between stand-ins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from tests.bundle.played import (
    JOB,
    NO_ACCOUNTS,
    NO_CONTROLLER,
    NO_SUCH_JOB,
    NOTHING,
    SILENT,
    Answer,
    Played,
    fails,
    says,
)

Answers = Mapping[str, tuple[Answer, ...]]

PASSED, FAILED, TIMEOUT, OUT_OF_MEMORY, CANCELLED, ERROR, UNKNOWN = 0, 1, 8, 10, 11, 12, 13
NAMES = {0: "PASSED", 1: "FAILED", 8: "TIMEOUT", 10: "OUT_OF_MEMORY", 11: "CANCELLED", 12: "ERROR", 13: "UNKNOWN"}


@dataclass(frozen=True)
class Row:
    """Answers of Slurm, the exit file that the job left (None: none), what comes of it and what is said."""

    case: str
    answers: Callable[[Played], Answers]
    code: int
    said: str = ""
    exit_file: str | None = "0 proven"
    looks: int | None = None
    unsaid: str = "\n\n"


def ended(p: Played, *accounting: Answer, queue: Answer = NO_SUCH_JOB, control: Answer = NO_SUCH_JOB) -> Answers:
    return {"squeue": (queue,), "sacct": accounting, "scontrol": (control,)}


def silent(answer: Answer) -> Answers:
    return {"squeue": (answer,)}


def then(p: Played, *states: Answer) -> Answers:
    """The queue gives these, one a look, and accounting then says COMPLETED."""
    return {"squeue": states, "sacct": (p.accounted("COMPLETED"),), "scontrol": (NO_SUCH_JOB,)}


HEADER_ALONE = says("CLUSTER: gamma")
HEADER_AND_ERROR = says("CLUSTER: gamma", err="slurm_load_jobs error: Unable to contact slurm controller\n")
LINE_ERROR = "slurm_load_jobs error: Unexpected message received"

ROWS = (
    # Who knows of the end, where the queue does not
    Row("POL-01 gone, accounting knows", lambda p: ended(p, p.accounted("COMPLETED")), PASSED),
    Row("POL-01 gone, exit file 0", lambda p: ended(p, NO_ACCOUNTS), PASSED, "its own exit file", looks=1),
    Row("POL-01 gone, exit file 7", lambda p: ended(p, NO_ACCOUNTS), FAILED, "exit code 7:0", "7 unproven"),
    Row("POL-01 gone, nobody knows", lambda p: ended(p, NO_ACCOUNTS), UNKNOWN, "says how it ended", None, looks=5),
    Row("POL-01 empty answer", lambda p: ended(p, p.accounted("COMPLETED"), queue=NOTHING), PASSED),
    Row("POL-01 empty answer, nobody knows", lambda p: ended(p, NOTHING, queue=NOTHING), UNKNOWN, "", None, looks=5),
    Row("POL-01 still in the queue", lambda p: ended(p, NO_ACCOUNTS, queue=p.queued("COMPLETED")), PASSED),
    Row("POL-01 the queue alone: FAILED", lambda p: ended(p, NO_ACCOUNTS, queue=p.queued("FAILED")), FAILED, "squeue",
        None),
    # A query that failed is no end
    Row("POL-02 timed out, then goes on", lambda p: then(p, *[SILENT] * 4, p.queued("RUNNING"), NO_SUCH_JOB), PASSED,
        "Socket timed out on send/recv operation. Nothing is concluded; asking again"),
    Row("POL-02 no controller for a while", lambda p: then(p, *[NO_CONTROLLER] * 6, p.queued("RUNNING"), NO_SUCH_JOB),
        PASSED, "Unable to contact slurm controller"),
    Row("POL-02 no controller for good", lambda p: {"squeue": (NO_CONTROLLER,)}, UNKNOWN, "nothing more was heard"),
    Row("POL-02 an error never seen before", lambda p: {"squeue": (fails(LINE_ERROR),)}, UNKNOWN, LINE_ERROR),
    Row("POL-02 killed by the limit of time", lambda p: {"squeue": (Answer(code=124),)}, UNKNOWN,
        "no answer within 30 s"),
    Row("POL-03 a header and an error", lambda p: {"squeue": (HEADER_AND_ERROR,)}, UNKNOWN, "Unable to contact"),
    Row("POL-03 a header, then goes on", lambda p: then(p, *[HEADER_AND_ERROR] * 3, p.queued("RUNNING"), NO_SUCH_JOB),
        PASSED, "Nothing is concluded"),
    Row("POL-03 a header alone", lambda p: ended(p, p.accounted("RUNNING"), queue=HEADER_ALONE), UNKNOWN, "", None,
        looks=5),
    Row("POL-03 a header alone, then goes on",
        lambda p: {"squeue": (HEADER_ALONE, p.queued("RUNNING"), NO_SUCH_JOB), "scontrol": (NO_SUCH_JOB,),
                   "sacct": (p.accounted("RUNNING"), p.accounted("FAILED", "2:0"))}, FAILED, "RUNNING", None, looks=3),
    Row("POL-06 an option that is not known", lambda p: {"squeue": (fails("squeue: unrecognized option '--states=all'"),)},
        UNKNOWN, "unrecognized option '--states=all'", looks=1, unsaid="asking again"),
    Row("POL-06 a field that sacct does not know",
        lambda p: ended(p, fails('sacct: error: Invalid field requested: "UID"')), PASSED, looks=1),
    # Words of states
    Row("POL-07 CANCELLED by", lambda p: ended(p, p.accounted("CANCELLED by 1001", "0:15")), CANCELLED, "exit code 0:15"),
    Row("POL-07 CANCELLED+", lambda p: ended(p, p.accounted("CANCELLED+")), CANCELLED),
    Row("POL-07 OUT_OF_ME+", lambda p: ended(p, p.accounted("OUT_OF_ME+", "0:125")), OUT_OF_MEMORY),
    Row("POL-07 a word of a later Slurm", lambda p: ended(p, p.accounted("EVAPORATED")), UNKNOWN, "", None, looks=5),
    Row("POL-07 such a word, in the queue", lambda p: then(p, p.queued("EXPEDITING"), NO_SUCH_JOB), PASSED, "EXPEDITING"),
    Row("POL-07 DEADLINE", lambda p: ended(p, p.accounted("DEADLINE")), TIMEOUT),
    Row("POL-07 TIMEOUT", lambda p: ended(p, p.accounted("TIMEOUT", "0:15"), queue=p.queued("TIMEOUT")), TIMEOUT),
    # The same id runs again
    Row("POL-09 a node is lost, then it runs again",
        lambda p: {"squeue": (p.queued("RUNNING"), p.queued("NODE_FAIL"), p.queued("PENDING", "BeginTime"),
                              p.queued("RUNNING"), p.queued("COMPLETED")),
                   "sacct": (p.accounted("NODE_FAIL", "1:0"), p.accounted("COMPLETED")),
                   "scontrol": (p.controlled("NODE_FAIL", "1:0"), p.controlled("COMPLETED"))},
        PASSED, "was requeued (restart 1)"),
    Row("POL-09 preempted, then it runs again",
        lambda p: {"squeue": (p.queued("PREEMPTED"), p.queued("RUNNING"), NO_SUCH_JOB), "scontrol": (NO_SUCH_JOB,),
                   "sacct": (p.accounted("PREEMPTED"), p.accounted("COMPLETED"))}, PASSED, "restart 1"),
    Row("POL-09 requeued between two looks", lambda p: then(p, p.queued("RUNNING"), p.queued("PENDING"), NO_SUCH_JOB),
        PASSED, "restart 1"),
    Row("POL-09 REQUEUED is alive", lambda p: then(p, p.queued("REQUEUED"), NO_SUCH_JOB), PASSED, "REQUEUED"),
    Row("POL-09 a lost node that stays lost",
        lambda p: ended(p, p.accounted("NODE_FAIL", "1:0"), queue=p.queued("NODE_FAIL")), ERROR, "NODE_FAIL", None,
        looks=2),
    Row("POL-09 both starts in accounting",
        lambda p: ended(p, says(*p.accounted("NODE_FAIL").out.split(), *p.accounted("COMPLETED").out.split())), PASSED),
    Row("POL-09 the second start still runs, by accounting",
        lambda p: ended(p, says(*p.accounted("NODE_FAIL").out.split(), *p.accounted("RUNNING").out.split())),
        UNKNOWN, "", None),
    Row("POL-10 launch failed, requeued, held",
        lambda p: then(p, p.queued("PENDING", "launch failed requeued held"), NO_SUCH_JOB), PASSED,
        f"release it on login with: scontrol release {JOB}"),
    Row("POL-10 requeued in held state", lambda p: then(p, p.queued("REQUEUE_HOLD", "JobHeldUser"), NO_SUCH_JOB),
        PASSED, "It is held"),
    Row("POL-10 SPECIAL_EXIT", lambda p: then(p, p.queued("SPECIAL_EXIT"), NO_SUCH_JOB), PASSED, "It is held"),
    Row("POL-11 COMPLETING", lambda p: then(p, *[p.queued("COMPLETING")] * 3, p.queued("COMPLETED")), PASSED,
        "COMPLETING", unsaid="slow to clean up"),
    Row("POL-11 COMPLETING for long", lambda p: then(p, *[p.queued("COMPLETING")] * 6, p.queued("COMPLETED")), PASSED,
        "its nodes are slow to clean up"),
    # What waiting does not help
    *(Row(f"SUB-06 {reason}", lambda p, reason=reason: then(p, p.queued("PENDING", reason), NO_SUCH_JOB), PASSED,
          f"will not start as it is: {reason}", unsaid="hang detected")
      for reason in ("PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "JobHeldUser", "JobHeldAdmin",
                     "InvalidQOS", "InvalidAccount", "AssocMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit",
                     "DependencyNeverSatisfied", "ReqNodeNotAvail, UnavailableNodes:n1", "QOSMinGRES")),
    *(Row(f"SUB-06 {reason}", lambda p, reason=reason: then(p, p.queued("PENDING", reason), NO_SUCH_JOB), PASSED,
          f"PENDING ({reason}", unsaid="will not start")
      for reason in ("Priority", "Resources", "BeginTime", "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit", "Dependency")),
    # Accounting
    Row("ACC-01 none, controller knows",
        lambda p: ended(p, NO_ACCOUNTS, control=p.controlled("FAILED", "7:0")), FAILED, "so says scontrol", None,
        looks=1),
    Row("ACC-01 none, by its older words",
        lambda p: ended(p, fails("You are not running a supported accounting_storage plugin")), FAILED, "7:0",
        "7 unproven", looks=1),
    Row("ACC-01 denied", lambda p: ended(p, fails("sacct: error: Access/permission denied")), PASSED, "exit file"),
    Row("ACC-01 out of reach, killed", lambda p: ended(p, fails("sacct: error: Problem talking to the database")),
        FAILED, "ended by signal 15", "143 unproven", looks=3),
    Row("ACC-02 lags four times", lambda p: ended(p, *[NOTHING] * 4, p.accounted("FAILED", "3:0")), FAILED, "3:0", None,
        looks=5),
    Row("ACC-02 lags for good", lambda p: ended(p, NOTHING), UNKNOWN, "says how it ended", None, looks=5),
    Row("ACC-02 still calls it RUNNING", lambda p: ended(p, p.accounted("RUNNING"), p.accounted("TIMEOUT")), TIMEOUT,
        "", "143 unproven"),
    Row("ACC-02 an error beside an empty answer, then an answer",
        lambda p: ended(p, Answer(err="sacct: error: slurmdbd\n"), p.accounted("COMPLETED")), PASSED, looks=1),
    Row("ACC-03 a step failed, the job did not",
        lambda p: ended(p, p.accounted("COMPLETED", steps=("FAILED|1:0", "COMPLETED|0:0"))), PASSED),
    Row("ACC-03 a step ran out of memory, the job did not fail",
        lambda p: ended(p, p.accounted("COMPLETED", steps=("OUT_OF_MEMORY|0:125", "COMPLETED|0:0"))), PASSED),
    Row("ACC-03 a step ran out of memory, and the job failed",
        lambda p: ended(p, p.accounted("FAILED", "1:0", steps=("OUT_OF_ME+|0:125",))), OUT_OF_MEMORY),
    Row("ACC-03 a step passed, the job did not",
        lambda p: ended(p, p.accounted("FAILED", "1:0", steps=("COMPLETED|0:0",))), FAILED, "1:0"),
    Row("ACC-05 exit 3", lambda p: ended(p, p.accounted("FAILED", "3:0")), FAILED, "exit code 3:0", "3 unproven"),
    Row("ACC-05 kill -9", lambda p: ended(p, p.accounted("FAILED", "0:9")), FAILED, "0:9 (killed by signal 9", None),
    Row("ACC-05 no log", lambda p: ended(p, p.accounted("FAILED", "0:53")), FAILED, "could not open the log", None),
    Row("SSH-10 exit 255", lambda p: ended(p, p.accounted("FAILED", "255:0")), FAILED, "255:0", "255 unproven"),
    # Ids that came again
    Row("ACC-id an older job's row", lambda p: ended(p, p.accounted("COMPLETED", age=86400)), UNKNOWN,
        "COMPLETED in accounting, submitted 20", None, looks=5),
    Row("ACC-id an older row, then ours", lambda p: ended(p, p.accounted("COMPLETED", age=900), p.accounted("FAILED", "2:0")),
        FAILED, "2:0", None, looks=2),
    Row("ACC-id an older row beside ours",
        lambda p: ended(p, says(*p.accounted("FAILED", "9:0", age=86400, steps=("OUT_OF_MEMORY|0:125",)).out.split(),
                                *p.accounted("FAILED", "2:0").out.split())), FAILED, "2:0", None),
    Row("ACC-id a later job of somebody else",
        lambda p: ended(p, says(*p.accounted("FAILED", "2:0").out.split(), *p.accounted("COMPLETED", user=4).out.split())),
        FAILED, "2:0", None),
    Row("ACC-id somebody else's job in the queue",
        lambda p: ended(p, p.accounted("COMPLETED"), queue=p.queued("RUNNING", token="x", user=4)), PASSED),
    Row("ACC-id somebody else's job in the queue, and nobody knows ours",
        lambda p: ended(p, NOTHING, queue=p.queued("RUNNING", token="x", user=4), control=p.controlled("COMPLETED", token="x")),
        UNKNOWN, "its id now belongs to another job", None, looks=5),
    Row("ACC-id another run's job", lambda p: ended(p, NOTHING, control=p.controlled("COMPLETED", token="t2")), UNKNOWN,
        "", None),
    Row("ACC-id clocks that differ", lambda p: ended(p, p.accounted("COMPLETED", age=200)), PASSED),
)  # fmt: skip


@pytest.mark.req("R54", "B27")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case)
def test_what_comes_of_an_answer(played: Played, row: Row) -> None:
    played.bundle()
    played.submitted()
    if row.exit_file is not None:
        played.write_exit(row.exit_file)
    played.play_all(row.answers(played))
    played.set(PATIENCE_SECONDS=60, SLOW_END_SECONDS=60)
    ran = played.run("monitor.sh")
    assert ran.code == row.code, ran.said
    assert played.kept("status") == NAMES[row.code]
    assert played.kept("code") == str(row.code)
    assert row.said in ran.said
    assert row.unsaid not in ran.said
    assert played.calls("scancel") == played.calls("sbatch") == []
    assert (played.kept("ended") == "yes") == (row.code != UNKNOWN)
    if row.looks is not None:
        assert len(played.calls("ssh")) == row.looks


@pytest.mark.req("R54")
def test_the_pauses_grow_where_accounting_lags(played: Played) -> None:
    played.bundle()
    played.submitted()
    played.play_all(ended(played, NOTHING))
    assert played.run("monitor.sh").code == UNKNOWN
    assert [pause for pause in played.slept() if pause >= 10] == [10, 20, 40, 80]


@pytest.mark.req("R53")
def test_a_cluster_that_is_silent_is_borne_with_for_its_time_and_no_longer(played: Played) -> None:
    played.bundle()
    played.submitted()
    played.play("squeue", NO_CONTROLLER)
    ran = played.run("monitor.sh")
    assert ran.code == UNKNOWN
    pauses = [pause for pause in played.slept() if pause >= 10]
    assert pauses == sorted(pauses)
    assert 600 <= int((played.folder / "clock").read_text()) <= 900
    assert len(played.calls("ssh")) <= 10


@pytest.mark.req("R53")
def test_a_watch_that_ends_while_nobody_answers_has_seen_nothing(played: Played) -> None:
    played.bundle(monitor_timeout="2m")
    played.submitted()
    played.play("squeue", played.queued("RUNNING"), NO_CONTROLLER)
    ran = played.run("monitor.sh")
    assert ran.code == UNKNOWN
    assert "was RUNNING, and then nothing more was heard of it" in played.kept("reason")


@pytest.mark.req("R25")
@pytest.mark.parametrize("cluster", ["", "gamma"])
def test_every_question_names_the_cluster_that_took_the_job(played: Played, cluster: str) -> None:
    played.bundle()
    played.submitted(cluster=cluster)
    header = Answer(out=f"CLUSTER: gamma\n{played.queued('RUNNING').out}")
    played.play("squeue", header if cluster else played.queued("RUNNING"), NO_SUCH_JOB)
    played.play("sacct", played.accounted("FAILED", "1:0"))
    played.play("scontrol", NO_SUCH_JOB)
    assert played.run("monitor.sh").code == FAILED
    asked = [*played.calls("squeue"), *played.calls("sacct"), *played.calls("scontrol")]
    assert len(asked) == 4
    assert all(("--clusters=gamma" in call) == (cluster == "gamma") for call in asked)


def test_questions_use_options_that_every_slurm_has(played: Played) -> None:
    played.bundle()
    played.submitted()
    played.play_all(ended(played, played.accounted("COMPLETED")))
    played.play("squeue", played.queued("RUNNING"), NO_SUCH_JOB)
    played.write_exit("0 proven")
    played.run("monitor.sh")
    asked = [*played.calls("squeue"), *played.calls("sacct"), *played.calls("scontrol")]
    options = {word.split("=")[0] for call in asked for word in call.split() if word.startswith("-")}
    assert options <= {"--noheader", "--states", "--jobs", "--format", "--parsable2", "--duplicates", "--oneliner"}


HANG = "rank 3: Hang Detected\n"


@pytest.mark.req("R52")
@pytest.mark.parametrize(
    ("after", "said"),
    [
        (("CANCELLED",), "and was cancelled"),
        (("COMPLETING",), "and was cancelled"),
        (("RUNNING",), "is still RUNNING after scancel; run ./cleanup.sh"),
    ],
)
def test_a_hang_is_cancelled_and_what_scancel_did_is_told(played: Played, after: tuple[str, ...], said: str) -> None:
    played.bundle()
    played.submitted()
    played.write_log(HANG)
    played.play("squeue", played.queued("RUNNING"), *[played.queued(state) for state in after])
    played.play("sacct", played.accounted("CANCELLED by 0", "0:15"))
    played.play("scontrol", NO_SUCH_JOB)
    played.play("scancel", NOTHING)
    ran = played.run("monitor.sh")
    assert ran.code == 9, ran.said
    assert said in played.kept("reason")
    assert played.calls("scancel") == [f"scancel {JOB}"]


@pytest.mark.req("R52")
@pytest.mark.parametrize(
    "queue",
    [
        lambda p: p.queued("PENDING"),
        lambda p: p.queued("RUNNING", token="x", user=4),
        lambda p: NO_SUCH_JOB,
        lambda p: NO_CONTROLLER,
    ],
    ids=["pending", "somebody else's", "gone", "unknown"],
)
def test_on_a_hang_only_our_own_running_job_is_cancelled(played: Played, queue: Callable[[Played], Answer]) -> None:
    played.bundle()
    played.submitted()
    played.write_log(HANG)
    played.play("squeue", *[queue(played)] * 6, NO_SUCH_JOB)
    played.play("sacct", played.accounted("FAILED", "1:0"))
    played.play("scontrol", NO_SUCH_JOB)
    assert played.run("monitor.sh").code == FAILED
    assert played.calls("scancel") == []


@pytest.mark.req("R52")
def test_a_hang_that_was_seen_while_nobody_answered_is_seen_again(played: Played) -> None:
    played.bundle()
    played.submitted()
    played.write_log(HANG)
    played.play("squeue", *[SILENT] * 3, played.queued("RUNNING"), NO_SUCH_JOB)
    played.play("sacct", played.accounted("CANCELLED by 0", "0:15"))
    played.play("scontrol", NO_SUCH_JOB)
    played.play("scancel", NOTHING)
    assert played.run("monitor.sh").code == 9
    assert len(played.calls("scancel")) == 1
