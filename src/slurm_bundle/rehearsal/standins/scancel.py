"""scancel: end jobs, or send them a signal."""

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.getopt import Options, Parser
from slurm_bundle.rehearsal.standins.jobs import STATES, Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.site import Site

TABLE = """account=A batch.b ctld. cron. full.f help. hurry.H interactive.i clusters=M jobname=n name= nodelist=w
partition=p qos=q quiet.Q reservation=R sibling= signal=s state=t usage. user=u verbose.v version.V wckey= me."""
SIGNALS = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "USR1": 10,
    "USR2": 12,
    "TERM": 15,
    "CONT": 18,
    "STOP": 19,
}


def run(place: Place, words: list[str]) -> int:
    options = Parser("scancel", TABLE, permute=True).parse(words)
    if "version" in options:
        print(Site(place)["version"])
        return 0
    filters = (
        "account",
        "name",
        "jobname",
        "nodelist",
        "partition",
        "qos",
        "reservation",
        "state",
        "user",
        "wckey",
        "me",
    )
    if not options.rest and not any(name in options for name in filters):
        raise StopError(1, "scancel: error: No job identification provided")
    for name in options.rest:
        if not name.replace("_", "").partition(".")[0].isdigit():
            raise StopError(1, f"scancel: error: Invalid job id {name}")
    now = Clock(place).now()
    with place.lock():
        jobs = Jobs(place)
        for job in choose(jobs, options):
            end_or_signal(place, jobs, job, options, now)
    return 0


def choose(jobs: Jobs, options: Options) -> list[Job]:
    found = jobs.all()
    if options.rest:
        names = [name.partition(".")[0] for name in options.rest]
        found = [job for name in names for job in jobs.select(name, found)]
    else:
        found = [job for job in found if not job.has_ended]
    fields = {
        "account": "account",
        "name": "name",
        "jobname": "name",
        "partition": "partition",
        "qos": "qos",
        "user": "user",
    }
    for option, field in fields.items():
        value = options.get(option)
        if value is not None:
            found = [job for job in found if job[field] in value.split(",")]
    state = (options.get("state") or "").upper()
    return [job for job in found if not state or state in (job["state"], STATES[job["state"]])]


def end_or_signal(place: Place, jobs: Jobs, job: Job, options: Options, now: float) -> None:
    if "verbose" in options:
        complain(f"scancel: Terminating job {job.shown_id}")
    if job.has_ended:
        if "verbose" in options:
            complain(f"scancel: error: Kill job error on job id {job.id}: Job/step already completing or completed")
        return
    signal = options.get("signal")
    if signal is not None and job["state"] == "RUNNING":
        number = signal if signal.isdigit() else str(SIGNALS.get(signal.upper().removeprefix("SIG"), 0))
        if number == "0":
            raise StopError(1, f"scancel: error: Unknown job signal: {signal}")
        whom = "batch" if "batch" in options else "all" if "full" in options else "steps"
        job["wants"] = f"signal {number} {whom}"
    elif job["state"] != "COMPLETING":
        cancel(place, job, now)
    jobs.store(job)


def cancel(place: Place, job: Job, now: float) -> None:
    """A pending job is gone at once; one that runs is ended by the keeper."""
    job["cancelled_by"] = job["uid"]
    if job["state"] == "PENDING":
        job.update(state="CANCELLED", start=repr(now), end=repr(now), last_reason="")
    else:
        job.update(state="COMPLETING", ending="CANCELLED", wants="cancel")
