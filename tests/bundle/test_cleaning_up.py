"""cleanup.sh between stand-ins: nothing is cancelled or removed on a guess, and scancel's yes is not believed."""

import fcntl

import pytest

from tests.bundle.played import (
    JOB,
    NO_CONTROLLER,
    NO_SUCH_JOB,
    NOTHING,
    SILENT,
    Answer,
    Played,
    Prepared,
    Queued,
    fails,
    says,
)

DONE, STILL_THERE, UNKNOWN = 0, 1, 13
EMPTY_QUEUE = says("JOBID|COMMAND")

pytestmark = pytest.mark.req("R48")


@pytest.fixture(autouse=True)
def bundle(played: Played) -> None:
    played.bundle()


def clean(played: Played, *queue: Prepared, cluster: str = "") -> None:
    played.submitted(cluster=cluster)
    played.play("squeue", *queue)
    played.play("scancel", NOTHING)


def test_a_job_is_looked_at_until_it_is_gone_and_then_the_scripts_go(played: Played) -> None:
    clean(played, Queued("RUNNING"), EMPTY_QUEUE, Queued("RUNNING"), Queued("COMPLETING"),
          Queued("CANCELLED"))  # fmt: skip
    ran = played.run("cleanup.sh")
    assert ran.code == DONE, ran.said
    assert f"job {JOB} is cancelled" in ran.said
    assert not played.scripts.exists()
    assert played.work.exists()


@pytest.mark.parametrize("cluster", ["", "gamma"])
def test_the_cluster_that_took_the_job_is_named_in_each_call(played: Played, cluster: str) -> None:
    clean(played, Queued("RUNNING"), EMPTY_QUEUE, NO_SUCH_JOB, cluster=cluster)
    assert played.run("cleanup.sh").code == DONE
    asked = [call for call in [*played.calls("squeue"), *played.calls("scancel")] if "--user" not in call]
    assert len(asked) == 3
    assert all(("--clusters=gamma" in call) == bool(cluster) for call in asked)


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "COMPLETING", "SUSPENDED"])
def test_where_scancel_does_not_take_nothing_is_removed(played: Played, state: str) -> None:
    clean(played, Queued("RUNNING"), EMPTY_QUEUE, Queued(state))
    ran = played.run("cleanup.sh")
    assert ran.code == STILL_THERE
    assert f"job {JOB} is still {state} after scancel" in ran.said
    assert played.scripts.exists()
    assert len(played.calls("scancel")) == 1


UNKNOWNS: dict[str, tuple[int, tuple[Prepared, ...]]] = {
    "no controller": (0, (NO_CONTROLLER,)),
    "timed out": (0, (SILENT,)),
    "an option that is not known": (0, (fails("squeue: unrecognized option '--states=all'"),)),
    "a header alone": (0, (says("CLUSTER: gamma"),)),
    "a header and an error": (0, (says("CLUSTER: gamma", err="squeue: error: no\n"),)),
    "an empty answer": (0, (NOTHING,)),
    "no answer about jobs without an id": (0, (Queued("RUNNING"), NO_CONTROLLER)),
    "a header alone after scancel": (1, (Queued("RUNNING"), EMPTY_QUEUE, says("CLUSTER: gamma"))),
    "no answer after scancel": (1, (Queued("RUNNING"), EMPTY_QUEUE, NO_CONTROLLER)),
}


@pytest.mark.parametrize(("cancelled", "queue"), UNKNOWNS.values(), ids=UNKNOWNS)
def test_without_an_answer_nothing_is_cancelled_or_removed(
    played: Played, cancelled: int, queue: tuple[Prepared, ...]
) -> None:
    clean(played, *queue)
    ran = played.run("cleanup.sh")
    assert ran.code == UNKNOWN, ran.said
    assert played.scripts.exists()
    assert len(played.calls("scancel")) == cancelled


def test_all_jobs_are_looked_at_before_the_first_is_cancelled(played: Played) -> None:
    clean(played, Queued("RUNNING"), EMPTY_QUEUE, NO_CONTROLLER)
    played.submitted(kind="build")
    assert played.run("cleanup.sh").code == UNKNOWN
    assert played.calls("scancel") == []


@pytest.mark.req("R48")
@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "COMPLETED"])
def test_a_job_of_somebody_else_with_our_id_is_left_alone(played: Played, state: str) -> None:
    clean(played, Queued(state, token="theirs", user=4), EMPTY_QUEUE)
    ran = played.run("cleanup.sh")
    assert ran.code == DONE
    assert f"the id {JOB} belongs to another job now, which is left alone" in ran.said
    assert played.calls("scancel") == []


def test_another_job_of_ours_is_left_alone_too(played: Played) -> None:
    clean(played, Queued("RUNNING", token="of-another-run"), EMPTY_QUEUE)
    assert played.run("cleanup.sh").code == DONE
    assert played.calls("scancel") == []


def test_a_site_that_shows_another_path_is_known_by_user_and_folder(played: Played) -> None:
    shown = played.spell(Queued("RUNNING")).out.strip().rpartition("|")[0]
    clean(played, says(f"{shown}|(null)"), EMPTY_QUEUE, NO_SUCH_JOB)
    assert played.run("cleanup.sh").code == DONE
    assert played.calls("scancel") == [f"scancel {JOB}"]


def test_a_job_whose_id_was_never_noted_is_cancelled_with_its_cluster(played: Played) -> None:
    played.keep(job_token="t1")
    found = says("CLUSTER: gamma", "JOBID|COMMAND", "4712|/x/submitted/t1.slurm")
    played.play("squeue", found, Queued("RUNNING"), NO_SUCH_JOB)
    played.play("scancel", NOTHING)
    assert played.run("cleanup.sh").code == DONE
    assert played.calls("scancel") == ["scancel --clusters=gamma 4712"]
    assert played.kept("job.token") == ""


def test_a_submission_that_is_still_at_work_there_is_not_cleaned_up(played: Played) -> None:
    clean(played, NO_SUCH_JOB, EMPTY_QUEUE)
    with played.path("t1").with_suffix(".slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = played.run("cleanup.sh")
        assert ran.code == UNKNOWN
        assert "is still at work there" in ran.said
        assert played.scripts.exists()
    assert played.run("cleanup.sh").code == DONE


def test_a_refusal_of_scancel_is_told(played: Played) -> None:
    clean(played, Queued("RUNNING"), EMPTY_QUEUE)
    played.play("scancel", fails("scancel: error: Kill job error on job id 4711: Access/permission denied"))
    ran = played.run("cleanup.sh")
    assert ran.code == STILL_THERE
    assert "Access/permission denied" in ran.said
    assert played.scripts.exists()


@pytest.mark.parametrize("mode", ["down", "cut-before", "cut-reply"])
def test_a_line_that_breaks_concludes_nothing(played: Played, mode: str) -> None:
    clean(played, NO_SUCH_JOB, EMPTY_QUEUE)
    played.play("ssh", Answer(mode))
    ran = played.run("cleanup.sh")
    assert ran.code == UNKNOWN
    assert "is cancelled" not in ran.said
    assert played.kept("job.id") == JOB
