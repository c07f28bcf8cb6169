"""What comes of each answer that Slurm may give while a job is watched: monitor.sh as it is, between stand-ins."""

from dataclasses import dataclass

import pytest

from tests.bundle.played import (
    JOB,
    NO_ACCOUNTS,
    NO_CONTROLLER,
    NO_SUCH_JOB,
    NOTHING,
    SILENT,
    Accounted,
    Answer,
    Controlled,
    Played,
    Prepared,
    Queued,
    fails,
    says,
)

PASSED, FAILED, TIMEOUT, HANG, OUT_OF_MEMORY, CANCELLED, ERROR, UNKNOWN = 0, 1, 8, 9, 10, 11, 12, 13
NAMES = {0: "PASSED", 1: "FAILED", 8: "TIMEOUT", 10: "OUT_OF_MEMORY", 11: "CANCELLED", 12: "ERROR", 13: "UNKNOWN"}


@dataclass(frozen=True)
class Row:
    """Answers of squeue and sacct, one a look; the exit file that the job left; what comes of it and what is said."""

    case: str
    squeue: tuple[Prepared, ...]
    sacct: tuple[Prepared, ...]
    code: int
    said: str = ""
    exit_file: str = "0 proven"
    scontrol: Prepared = NO_SUCH_JOB
    looks: int | None = None
    unsaid: str = "no such words"


GONE = (NO_SUCH_JOB,)
NO_FILE = ""
DONE = (Accounted("COMPLETED"),)
RUNNING, PENDING = Queued("RUNNING"), Queued("PENDING")
HEADER_ALONE = says("CLUSTER: gamma")
HEADER_AND_ERROR = says("CLUSTER: gamma", err="slurm_load_jobs error: Unable to contact slurm controller\n")
THEIRS = Queued("RUNNING", token="x", user=4)


ROWS = (
    # Who knows of the end, where the queue does not
    Row("POL-01 gone, accounting knows", GONE, DONE, PASSED),
    Row("POL-01 gone, exit file 0", GONE, (NO_ACCOUNTS,), PASSED, "its own exit file", looks=1),
    Row("POL-01 gone, exit file 7", GONE, (NO_ACCOUNTS,), FAILED, "exit code 7:0", "7 unproven", looks=1),
    Row("POL-01 gone, nobody knows", GONE, (NO_ACCOUNTS,), UNKNOWN, "says how it ended", NO_FILE, looks=5),
    Row("POL-01 an empty answer", (NOTHING,), DONE, PASSED),
    Row("POL-01 an empty answer, nobody knows", (NOTHING,), (NOTHING,), UNKNOWN, "", NO_FILE, looks=5),
    Row("POL-01 ended, still in the queue", (Queued("COMPLETED"),), (NO_ACCOUNTS,), PASSED, "so says squeue"),
    Row("POL-01 the queue alone knows", (Queued("FAILED"),), (NO_ACCOUNTS,), FAILED, "so says squeue", NO_FILE),
    # A query that failed is no end
    Row("POL-02 timed out, then goes on", (*[SILENT] * 4, RUNNING, NO_SUCH_JOB), DONE, PASSED,
        "Socket timed out on send/recv operation. Nothing is concluded; asking again"),
    Row("POL-02 no controller for a while", (*[NO_CONTROLLER] * 6, RUNNING, NO_SUCH_JOB), DONE, PASSED,
        "Unable to contact slurm controller"),
    Row("POL-02 no controller for good", (NO_CONTROLLER,), (), UNKNOWN, "nothing more was heard"),
    Row("POL-02 an error never seen before", (fails("squeue: error: The moon is full"),), (), UNKNOWN, "is full"),
    Row("POL-02 killed by the limit of time", (Answer(code=124),), (), UNKNOWN, "no answer within 30 s"),
    Row("POL-03 a header and an error", (HEADER_AND_ERROR,), (), UNKNOWN, "Unable to contact"),
    Row("POL-03 a header and an error, then goes on", (*[HEADER_AND_ERROR] * 3, RUNNING, NO_SUCH_JOB), DONE, PASSED,
        "Nothing is concluded"),
    Row("POL-03 a header alone", (HEADER_ALONE,), (Accounted("RUNNING"),), UNKNOWN, "", NO_FILE, looks=5),
    Row("POL-03 a header alone, then goes on", (HEADER_ALONE, RUNNING, NO_SUCH_JOB),
        (Accounted("RUNNING"), Accounted("FAILED", "2:0")), FAILED, "RUNNING", NO_FILE, looks=3),
    Row("POL-06 squeue does not know an option", (fails("squeue: unrecognized option '--states=all'"),), (), UNKNOWN,
        "unrecognized option '--states=all'", looks=1, unsaid="asking again"),
    Row("POL-06 sacct does not know a field", GONE, (fails('sacct: error: Invalid field requested: "UID"'),), PASSED,
        looks=1),
    # Words of states
    Row("POL-07 CANCELLED by", GONE, (Accounted("CANCELLED by 1001", "0:15"),), CANCELLED, "exit code 0:15"),
    Row("POL-07 CANCELLED+", GONE, (Accounted("CANCELLED+"),), CANCELLED),
    Row("POL-07 OUT_OF_ME+", GONE, (Accounted("OUT_OF_ME+", "0:125"),), OUT_OF_MEMORY),
    Row("POL-07 DEADLINE", GONE, (Accounted("DEADLINE"),), TIMEOUT),
    Row("POL-07 TIMEOUT", (Queued("TIMEOUT"),), (Accounted("TIMEOUT", "0:15"),), TIMEOUT),
    Row("POL-07 a word of a later Slurm", GONE, (Accounted("EVAPORATED"),), UNKNOWN, "", NO_FILE, looks=5),
    Row("POL-07 such a word in the queue", (Queued("EXPEDITING"), NO_SUCH_JOB), DONE, PASSED, "EXPEDITING"),
    # The same id runs again
    Row("POL-09 a node is lost, and it runs again",
        (RUNNING, Queued("NODE_FAIL"), Queued("PENDING", "BeginTime"), RUNNING, Queued("COMPLETED")),
        (Accounted("NODE_FAIL", "1:0"), *DONE), PASSED, "was requeued (restart 1)"),
    Row("POL-09 preempted, and it runs again", (Queued("PREEMPTED"), RUNNING, NO_SUCH_JOB),
        (Accounted("PREEMPTED"), *DONE), PASSED, "restart 1"),
    Row("POL-09 requeued between two looks", (RUNNING, PENDING, NO_SUCH_JOB), DONE, PASSED, "restart 1"),
    Row("POL-09 REQUEUED is alive", (Queued("REQUEUED"), NO_SUCH_JOB), DONE, PASSED, "REQUEUED"),
    Row("POL-09 a lost node stays lost", (Queued("NODE_FAIL"),), (Accounted("NODE_FAIL", "1:0"),), ERROR, "NODE_FAIL",
        NO_FILE, looks=2),
    Row("POL-09 both starts in accounting", GONE, ((Accounted("NODE_FAIL"), *DONE),), PASSED, looks=1),
    Row("POL-09 the second start runs still, says accounting", GONE, ((Accounted("NODE_FAIL"), Accounted("RUNNING")),),
        UNKNOWN, "", NO_FILE),
    Row("POL-10 launch failed, requeued, held", (Queued("PENDING", "launch failed requeued held"), NO_SUCH_JOB), DONE,
        PASSED, f"release it on login with: scontrol release {JOB}"),
    Row("POL-10 requeued in held state", (Queued("REQUEUE_HOLD", "JobHeldUser"), NO_SUCH_JOB), DONE, PASSED, "is held"),
    Row("POL-10 SPECIAL_EXIT", (Queued("SPECIAL_EXIT"), NO_SUCH_JOB), DONE, PASSED, "It is held"),
    Row("POL-11 COMPLETING", (*[Queued("COMPLETING")] * 3, Queued("COMPLETED")), DONE, PASSED, "COMPLETING",
        unsaid="slow to clean up"),
    Row("POL-11 COMPLETING for long", (*[Queued("COMPLETING")] * 6, Queued("COMPLETED")), DONE, PASSED,
        "its nodes are slow to clean up"),
    # Accounting
    Row("ACC-01 none, the controller knows", GONE, (NO_ACCOUNTS,), FAILED, "exit code 7:0", NO_FILE,
        Controlled("FAILED", "7:0"), looks=1),
    Row("ACC-01 none, in older words", GONE, (fails("You are not running a supported accounting_storage plugin"),),
        FAILED, "7:0", "7 unproven", looks=1),
    Row("ACC-01 denied", GONE, (fails("sacct: error: Access/permission denied"),), PASSED, "its own exit file"),
    Row("ACC-01 out of reach, and it was killed", GONE, (fails("sacct: error: Problem talking to the database"),),
        FAILED, "ended by signal 15", "143 unproven", looks=3),
    Row("ACC-02 lags four times", GONE, (*[NOTHING] * 4, Accounted("FAILED", "3:0")), FAILED, "3:0", NO_FILE, looks=5),
    Row("ACC-02 lags for good", GONE, (NOTHING,), UNKNOWN, "says how it ended", NO_FILE, looks=5),
    Row("ACC-02 calls it RUNNING, then TIMEOUT", GONE, (Accounted("RUNNING"), Accounted("TIMEOUT")), TIMEOUT, "",
        "143 unproven"),
    Row("ACC-02 an error beside an empty answer, then an answer", GONE,
        (Answer(err="sacct: error: slurmdbd\n"), *DONE), PASSED, looks=1),
    Row("ACC-03 a step failed, the job did not", GONE,
        (Accounted("COMPLETED", steps=(("FAILED", "1:0"), ("COMPLETED", "0:0"))),), PASSED),
    Row("ACC-03 a step ran out of memory, the job did not fail", GONE,
        (Accounted("COMPLETED", steps=(("OUT_OF_MEMORY", "0:125"), ("COMPLETED", "0:0"))),), PASSED),
    Row("ACC-03 a step ran out of memory, and the job failed", GONE,
        (Accounted("FAILED", "1:0", steps=(("OUT_OF_ME+", "0:125"),)),), OUT_OF_MEMORY),
    Row("ACC-03 a step passed, the job did not", GONE, (Accounted("FAILED", "1:0", steps=(("COMPLETED", "0:0"),)),),
        FAILED, "1:0"),
    Row("ACC-05 exit 3", GONE, (Accounted("FAILED", "3:0"),), FAILED, "exit code 3:0", "3 unproven"),
    Row("ACC-05 kill -9", GONE, (Accounted("FAILED", "0:9"),), FAILED, "0:9 (killed by signal 9", NO_FILE),
    Row("ACC-05 no log", GONE, (Accounted("FAILED", "0:53"),), FAILED, "could not open the log", NO_FILE),
    Row("SSH-10 exit 255", GONE, (Accounted("FAILED", "255:0"),), FAILED, "255:0", "255 unproven"),
    # Ids that came again
    Row("ACC-id an older job's row", GONE, (Accounted("COMPLETED", age=86400),), UNKNOWN,
        "COMPLETED in accounting, submitted 20", NO_FILE, looks=5),
    Row("ACC-id an older job's row, then ours", GONE, (Accounted("COMPLETED", age=900), Accounted("FAILED", "2:0")),
        FAILED, "2:0", NO_FILE, looks=2),
    Row("ACC-id an older job's row beside ours", GONE,
        ((Accounted("FAILED", "9:0", age=86400, steps=(("OUT_OF_MEMORY", "0:125"),)), Accounted("FAILED", "2:0")),),
        FAILED, "2:0", NO_FILE),
    Row("ACC-id a later job of somebody else", GONE, ((Accounted("FAILED", "2:0"), Accounted("COMPLETED", user=4)),),
        FAILED, "2:0", NO_FILE),
    Row("ACC-id somebody else's job in the queue", (THEIRS,), DONE, PASSED),
    Row("ACC-id somebody else's job in the queue, and nobody knows ours", (THEIRS,), (NOTHING,), UNKNOWN,
        "its id now belongs to another job", NO_FILE, Controlled("COMPLETED", token="x", user=4), looks=5),
    Row("ACC-id a job of another run, says the controller", GONE, (NOTHING,), UNKNOWN, "", NO_FILE,
        Controlled("COMPLETED", token="t2")),
    Row("ACC-id clocks that differ", GONE, (Accounted("COMPLETED", age=200),), PASSED),
)  # fmt: skip


def watched(played: Played, squeue: tuple[Prepared, ...], *sacct: Prepared, **changes: object) -> None:
    """A job that is watched next."""
    played.bundle(**changes)
    played.submitted()
    played.play("squeue", *squeue)
    played.play("sacct", *sacct)
    played.play("scontrol", NO_SUCH_JOB)


@pytest.mark.req("R54", "B27")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case)
def test_what_comes_of_an_answer(played: Played, row: Row) -> None:
    watched(played, row.squeue, *row.sacct)
    played.play("scontrol", row.scontrol)
    if row.exit_file:
        played.write_exit(row.exit_file)
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


# SUB-06: reasons to wait that waiting does not end, and those that it does
STUCK = (
    *("PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "JobHeldUser", "JobHeldAdmin", "InvalidQOS"),
    *("InvalidAccount", "AssocMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit", "DependencyNeverSatisfied"),
    *("ReqNodeNotAvail, UnavailableNodes:n1", "QOSMinGRES"),
)
WAITING = ("Priority", "Resources", "BeginTime", "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit", "Dependency")


@pytest.mark.req("R56")
@pytest.mark.parametrize(("reasons", "stuck"), [(STUCK, True), (WAITING, False)], ids=["stuck", "waiting"])
def test_a_job_that_cannot_start_is_told_with_each_reason_and_left_alone(
    played: Played, reasons: tuple[str, ...], stuck: bool
) -> None:
    watched(played, (*[Queued("PENDING", reason) for reason in reasons], NO_SUCH_JOB), Accounted("FAILED", "1:0"))
    ran = played.run("monitor.sh")
    assert ran.code == FAILED
    for reason in reasons:
        assert f"PENDING ({reason}; estimated start" in ran.said
        assert (f"will not start as it is: {reason}" in ran.said) == stuck
    assert "hang" not in ran.said.replace("change", "")
    assert played.calls("scancel") == []


@pytest.mark.req("R54")
def test_the_pauses_grow_where_accounting_lags(played: Played) -> None:
    watched(played, GONE, NOTHING)
    assert played.run("monitor.sh").code == UNKNOWN
    assert [pause for pause in played.slept() if pause >= 10] == [10, 20, 40, 80]


@pytest.mark.req("R53")
def test_a_cluster_that_is_silent_is_borne_with_for_its_time_and_no_longer(played: Played) -> None:
    watched(played, (NO_CONTROLLER,))
    assert played.run("monitor.sh").code == UNKNOWN
    pauses = [pause for pause in played.slept() if pause >= 10]
    assert pauses == sorted(pauses)
    assert 600 <= int((played.folder / "clock").read_text()) <= 900
    assert len(played.calls("ssh")) <= 10


@pytest.mark.req("R53")
def test_a_watch_that_ends_while_nobody_answers_has_seen_nothing(played: Played) -> None:
    watched(played, (RUNNING, NO_CONTROLLER), monitor_timeout="2m")
    assert played.run("monitor.sh").code == UNKNOWN
    assert "was RUNNING, and then nothing more was heard of it" in played.kept("reason")


@pytest.mark.req("R53")
def test_a_watch_that_ends_leaves_the_job_alone(played: Played) -> None:
    watched(played, (RUNNING,), monitor_timeout="2m")
    ran = played.run("monitor.sh")
    assert ran.code == TIMEOUT
    assert "job 4711 is RUNNING; it was left alone" in ran.said
    assert played.kept("ended") == ""


@pytest.mark.req("R55")
@pytest.mark.parametrize("mode", ["down", "cut-before", "cut-reply"])
def test_a_line_that_breaks_while_watching_concludes_nothing(played: Played, mode: str) -> None:
    watched(played, (RUNNING, RUNNING, NO_SUCH_JOB), Accounted("FAILED", "3:0"))
    played.play("ssh", NOTHING, Answer(mode), Answer(mode), NOTHING)
    ran = played.run("monitor.sh")
    assert ran.code == FAILED, ran.said
    assert ran.said.count("Nothing is concluded; asking again") == 2


@pytest.mark.req("R55")
def test_half_of_an_answer_is_no_answer(played: Played) -> None:
    watched(played, GONE, Accounted("COMPLETED"))
    played.write_exit("0 proven")
    assert played.run("monitor.sh").code == PASSED
    (played.out / ".run" / "ended").unlink()
    whole = (played.out / ".run" / "answers").read_bytes()
    for at in (whole.index(b"over=yes") + 9, whole.index(b"exit=") + 6, len(whole) - 5, len(whole) - 2):
        played.play("ssh", Answer("cut-answer", str(at)), Answer("down"))
        played.set(PATIENCE_SECONDS=1)
        ran = played.run("monitor.sh")
        assert (ran.code, played.kept("status")) == (UNKNOWN, "UNKNOWN"), (at, ran.said)


@pytest.mark.req("R25")
@pytest.mark.parametrize("cluster", ["", "gamma"])
def test_every_question_names_the_cluster_that_took_the_job(played: Played, cluster: str) -> None:
    watched(played, (RUNNING, NO_SUCH_JOB), Accounted("FAILED", "1:0"))
    played.submitted(cluster=cluster)
    if cluster:
        played.play("squeue", says("CLUSTER: gamma", played.spell(RUNNING).out.strip()), NO_SUCH_JOB)
    assert played.run("monitor.sh").code == FAILED
    asked = [*played.calls("squeue"), *played.calls("sacct"), *played.calls("scontrol")]
    assert len(asked) == 4
    assert all(("--clusters=gamma" in call) == (cluster == "gamma") for call in asked)


@pytest.mark.req("R54")
def test_questions_use_options_that_every_slurm_has(played: Played) -> None:
    watched(played, (RUNNING, NO_SUCH_JOB), Accounted("FAILED", "1:0"))
    played.run("monitor.sh")
    asked = [*played.calls("squeue"), *played.calls("sacct"), *played.calls("scontrol")]
    options = {word.split("=")[0] for call in asked for word in call.split() if word.startswith("-")}
    assert options == {"--noheader", "--states", "--jobs", "--format", "--parsable2", "--duplicates", "--oneliner"}


@pytest.mark.req("R52")
@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("CANCELLED", "and was cancelled"),
        ("COMPLETING", "and was cancelled"),
        ("RUNNING", "is still RUNNING after scancel; run ./cleanup.sh"),
    ],
)
def test_a_hang_is_cancelled_and_what_scancel_did_is_told(played: Played, after: str, said: str) -> None:
    watched(played, (RUNNING, Queued(after)), Accounted("CANCELLED by 0", "0:15"))
    played.write_log("rank 3: Hang Detected\n")
    played.play("scancel", NOTHING)
    ran = played.run("monitor.sh")
    assert ran.code == HANG, ran.said
    assert said in played.kept("reason")
    assert played.calls("scancel") == [f"scancel {JOB}"]


@pytest.mark.req("R52")
@pytest.mark.parametrize(
    "queue", [PENDING, THEIRS, NO_SUCH_JOB, NO_CONTROLLER], ids=["pending", "somebody else's", "gone", "unknown"]
)
def test_on_a_hang_only_our_own_running_job_is_cancelled(played: Played, queue: Prepared) -> None:
    watched(played, (*[queue] * 6, NO_SUCH_JOB), Accounted("FAILED", "1:0"))
    played.write_log("rank 3: Hang Detected\n")
    assert played.run("monitor.sh").code == FAILED
    assert played.calls("scancel") == []


@pytest.mark.req("R52")
def test_a_hang_that_was_printed_while_nobody_answered_is_found(played: Played) -> None:
    watched(played, (*[SILENT] * 3, RUNNING, NO_SUCH_JOB), Accounted("CANCELLED by 0", "0:15"))
    played.write_log("rank 3: Hang Detected\n")
    played.play("scancel", NOTHING)
    assert played.run("monitor.sh").code == HANG
    assert len(played.calls("scancel")) == 1


@pytest.mark.req("R52")
def test_a_hang_is_looked_for_again_where_scancel_failed(played: Played) -> None:
    watched(played, (RUNNING, RUNNING, Queued("CANCELLED")), Accounted("CANCELLED by 0", "0:15"))
    played.write_log("rank 3: Hang Detected\n")
    played.play("scancel", fails("scancel: error: Kill job error on job id 4711: Socket timed out"), NOTHING)
    ran = played.run("monitor.sh")
    assert ran.code == HANG
    assert "scancel failed: scancel: error: Kill job error" in ran.said


@pytest.mark.req("R11", "R54")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        (says("AccountingStorageType   = accounting_storage/none", "JobCompType = jobcomp/none"), True),
        (says("AccountingStorageType   = accounting_storage/slurmdbd", "JobCompType = jobcomp/none"), False),
        (NO_CONTROLLER, False),
    ],
    ids=["none", "slurmdbd", "no answer"],
)
def test_preflight_says_once_that_a_cluster_keeps_no_accounts(played: Played, config: Answer, told: bool) -> None:
    played.bundle()
    played.put(played.folder / "here" / "git", "#!/bin/bash\n")
    played.play("squeue", says("slurm 22.05.8"))
    played.play("scontrol", config)
    ran = played.run("preflight.sh")
    assert ran.code == 0, ran.said
    assert ("login keeps no accounts" in ran.said) == told
