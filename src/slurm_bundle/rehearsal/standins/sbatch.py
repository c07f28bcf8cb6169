"""sbatch: read a batch script and its #SBATCH lines, and put the job in the queue."""

import os
import sys
import time

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.container import check_options
from slurm_bundle.rehearsal.standins.getopt import Options
from slurm_bundle.rehearsal.standins.jobs import Job, Jobs
from slurm_bundle.rehearsal.standins.options import read_directives, read_options
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.records import load_record, write_whole
from slurm_bundle.rehearsal.standins.request import Request, add_job
from slurm_bundle.rehearsal.standins.scheduler import choose_nodes, estimate_start
from slurm_bundle.rehearsal.standins.site import Site
from slurm_bundle.rehearsal.standins.times import show_stamp


def run(place: Place, words: list[str]) -> int:
    site, clock = Site(place), Clock(place)
    early = read_options("sbatch", words)
    if "version" in early:
        print(site["version"])
        return 0
    script, source, arguments = find_script(early)
    options = read_options("sbatch", words, read_directives(script))
    check_options("sbatch", options)
    job = Request(place, site, "sbatch", options, clock.now()).read()
    complete(job, options, source, arguments)
    job["submit_line"] = " ".join(["sbatch", *words])
    if "test-only" in options:
        return tell_start(place, site, job, clock.now())
    tasks = read_array(options.get("array"))
    jobs = Jobs(place)
    with place.lock():
        first = submit(place, jobs, job, script, tasks, kind_of(place, script))
    print(first if "parsable" in options else f"Submitted batch job {first}")
    sys.stdout.flush()
    return wait_for(place, jobs, first, clock) if "wait" in options else 0


def find_script(options: Options) -> tuple[str, str, list[str]]:
    """The text of the batch script, its path (empty for --wrap and stdin), and its arguments."""
    if "wrap" in options:
        if options.rest:
            raise StopError(1, "sbatch: error: Script arguments not permitted with --wrap option")
        return f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{options.get('wrap')}\n", "", []
    source = options.rest[0] if options.rest else ""
    try:
        with open(source or 0, "rb") as file:
            text = file.read().decode("utf-8", "surrogateescape")
    except OSError:
        raise StopError(1, f"sbatch: error: Unable to open file {source}") from None
    if not text:
        raise StopError(1, "sbatch: error: Batch script is empty!")
    if not text.startswith("#!"):
        raise StopError(
            1,
            "sbatch: error: This does not look like a batch script.  The first",
            "sbatch: error: line must start with #! followed by the path to an interpreter.",
            "sbatch: error: For instance: #!/bin/sh",
        )
    if "\r\n" in text:
        raise StopError(
            1,
            "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
            "sbatch: error: instead of expected UNIX line breaks (\\n).",
        )
    return text, os.path.join(os.getcwd(), source) if source else "", options.rest[1:]


def complete(job: Job, options: Options, source: str, arguments: list[str]) -> None:
    """What a batch job has beyond any other."""
    get = options.get
    name = os.path.basename(source) if source else "wrap" if "wrap" in options else "sbatch"
    job.update(
        kind="batch", name=job["name"] or name, command=" ".join([source, *arguments]) if source else "",
        stdout=get("output") or ("slurm-%A_%a.out" if "array" in options else "slurm-%j.out"),
        stderr=get("error") or "", stdin=get("input") or "/dev/null",
        append="yes" if (get("open-mode") or "").startswith("a") else "", export=get("export") or "",
        submitted_from=os.getcwd(), arguments="\0".join(arguments), signal=get("signal") or "",
        said_tasks="yes" if "ntasks" in options or "ntasks-per-node" in options else "",
        said_cpus="yes" if "cpus-per-task" in options else "",
    )  # fmt: skip


def tell_start(place: Place, site: Site, job: Job, now: float) -> int:
    jobs = Jobs(place)
    with place.lock():
        number = jobs.new_id()
        everyone = jobs.all()
    chosen = choose_nodes(site, job, everyone)
    start = now if chosen is not None else estimate_start(site, job, everyone, now)
    chosen = choose_nodes(site, job, []) if chosen is None else chosen
    assert chosen is not None
    cpus = sum(chosen.cpus)
    complain(
        f"sbatch: Job {number} to start at {show_stamp(start)} using {cpus} processors on nodes {chosen.nodelist} "
        f"in partition {job['partition']}"
    )
    return 0


def read_array(text: str | None) -> tuple[list[int], str]:
    """The tasks of 0-3, 1-7:2, 1,3,5 with their %LIMIT."""
    if text is None:
        return [], ""
    wish, _, throttle = text.partition("%")
    tasks: set[int] = set()
    for part in wish.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or (step and not step.isdigit()):
            raise StopError(1, "sbatch: error: Batch job submission failed: Invalid job array specification")
        tasks.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return sorted(tasks), throttle


def submit(place: Place, jobs: Jobs, job: Job, script: str, array: tuple[list[int], str], kind: str) -> str:
    """Add the job, or each task of its array, with what the keeper starts it with. Gives the id that sbatch tells."""
    tasks, throttle = array
    first = ""
    wanted: list[int | None] = [*tasks] or [None]
    for task in wanted:
        one = Job(job)
        one["role"] = kind
        add_job(jobs, one)
        first = first or one.id
        if task is not None:
            one.update(array=first, task=str(task), array_tasks=",".join(map(str, tasks)), throttle=throttle)
            jobs.store(one)
        spool = f"{place.slurm}/spool/{one.id}"
        write_whole(f"{spool}.script", script.encode("utf-8", "surrogateescape"))
        variables = "\0".join(f"{name}={value}" for name, value in os.environ.items())
        write_whole(f"{spool}.env", variables.encode("utf-8", "surrogateescape"))
    return first


def kind_of(place: Place, script: str) -> str:
    """Which of the bundle's scripts this is: build, job, own (a batch script of the user's), or none of them."""
    for role, path in load_record(f"{place.root}/roles").items():
        try:
            with open(path, "rb") as file:
                if file.read().decode("utf-8", "surrogateescape") == script:
                    return role
        except FileNotFoundError:
            continue
    return ""


def wait_for(place: Place, jobs: Jobs, number: str, clock: Clock) -> int:
    """sbatch --wait: until the job has ended; its exit code."""
    while True:
        place.die_with_keeper()
        mine = jobs.select(number, jobs.all())
        if all(job.has_ended for job in mine):
            code, _, signal = max(job["exit"] for job in mine).partition(":")
            return int(code) or (1 if int(signal or 0) else 0)
        time.sleep(0.02)
