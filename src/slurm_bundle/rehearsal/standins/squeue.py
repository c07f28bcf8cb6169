"""squeue: what is in the queue."""

import time

from slurm_bundle.rehearsal.standins import columns
from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.columns import HEADINGS, Row, queue_value
from slurm_bundle.rehearsal.standins.getopt import Options, Parser
from slurm_bundle.rehearsal.standins.jobs import STATES, Job, Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain, user_name
from slurm_bundle.rehearsal.standins.site import Site
from slurm_bundle.rehearsal.standins.times import show_short

TABLE = """account=A all.a array.r array-unique. clusters=M federation. format=o Format=O help. hide. iterate=i jobs=j
json. licenses=L local. long.l me. name=n nodelist=w noconvert. noheader.h partition=p priority.P qos=q reservation=R
sibling. sort=S start. states=t steps?s usage. user=u verbose.v version.V yaml."""
PLAIN = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
STEPS = "%.15i %.8j %.9P %.8u %.9M %N"
NAMES = {
    "account": "a", "arrayjobid": "F", "arraytaskid": "K", "command": "o", "comment": "k", "cpus": "C",
    "dependency": "E", "endtime": "e", "jobarrayid": "i", "jobid": "A", "name": "j", "nodelist": "N", "numcpus": "C",
    "numnodes": "D", "partition": "P", "prioritylong": "Q", "qos": "q", "reason": "r", "reasonlist": "R",
    "starttime": "S", "state": "T", "statecompact": "t", "submittime": "V", "timeleft": "L", "timelimit": "l",
    "timeused": "M", "tres-per-node": "b", "userid": "U", "username": "u", "workdir": "Z",
}  # fmt: skip


def run(place: Place, words: list[str]) -> int:
    options = Parser("squeue", TABLE, permute=True).parse(words)
    site, now = Site(place), Clock(place).now()
    if "version" in options:
        print(site["version"])
        return 0
    states = read_states(options)
    with place.lock():
        everyone = Jobs(place).all()
    known = [job for job in everyone if columns.is_shown(job, now, site.number("min_job_age"))]
    found = choose(known, options, states)
    if "long" in options and "noheader" not in options:
        print(time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(now)))
    if "steps" in options:
        return show_steps(place, found, options, now)
    layout = options.get("format") or ("" if "Format" in options else START if "start" in options else PLAIN)
    if "long" in options and "format" not in options:
        layout = LONG
    fields = read_names(options.get("Format") or "") if not layout else read_layout(layout)
    if "noheader" not in options:
        print(show(fields, [HEADINGS.get(letter, "") for letter, *_ in fields]))
    apart = "array" in options or all("_" in name for name in (options.get("jobs") or "all").split(","))
    for row in group(found, apart=apart):
        estimate = columns.estimate_of(row.job, everyone, now)
        print(show(fields, [queue_value(letter, row, everyone, estimate, now) for letter, *_ in fields]))
    return 0


def read_states(options: Options) -> list[str]:
    """The states that are asked for, by full name; none for all of them."""
    text = options.get("states")
    if "start" in options:
        return ["PENDING"]
    if text is None:
        return ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED"]
    states = []
    for word in text.upper().split(","):
        if word == "ALL":
            return []
        name = next((name for name, short in STATES.items() if word in (name, short)), None)
        if name is None:
            valid = ",".join(STATES)
            raise StopError(
                1,
                f"squeue: error: Invalid job state specified: {word.lower()}",
                f"squeue: error: Valid job states include: {valid}",
                "",
            )
        states.append(name)
    return states


def choose(known: list[Job], options: Options, states: list[str]) -> list[Job]:
    """The jobs that the options leave, in the order of partition, state and priority."""
    wanted = options.get("jobs")
    if wanted is not None:
        known = choose_ids(known, wanted)
    users = options.get("user")
    names = {"account": "account", "name": "name", "partition": "partition", "qos": "qos"}
    if "me" in options:
        users = user_name()
    for user in filter(None, (users or "").split(",")):
        if user != user_name() and not user.isdigit() and not is_user(user):
            complain(f"squeue: error: Invalid user: {user}\n")
    if users:
        known = [job for job in known if {job["user"], job["uid"]} & set(users.split(","))]
    for option, field in names.items():
        values = options.get(option)
        if values is not None:
            known = [job for job in known if job[field] in values.split(",")]
    if states:
        known = [job for job in known if job["state"] in states]
    return sort_jobs(known, options.get("sort") or "P,t,-p")


def sort_jobs(found: list[Job], order: str) -> list[Job]:
    """In the order of the fields of --sort, the first counting most; with - the other way round."""
    keys = {
        "i": lambda job: int(job.id), "j": lambda job: job["name"], "P": lambda job: job["partition"],
        "t": lambda job: STATES[job["state"]], "T": lambda job: job["state"], "p": columns.priority_of,
        "Q": columns.priority_of, "u": lambda job: job["user"], "S": lambda job: job.time("start") or 0,
    }  # fmt: skip
    found = sorted(found, key=lambda job: int(job.id))
    for word in reversed(order.split(",")):
        key = keys.get(word.lstrip("+-"))
        if key is not None:
            found = sorted(found, key=key, reverse=word.startswith("-"))
    return found


def choose_ids(known: list[Job], wanted: str) -> list[Job]:
    ids = wanted.split(",")
    for name in ids:
        if not name.replace("_", "").isdigit():
            raise StopError(1, f"squeue: error: Invalid job id: {name}")
    found = [job for job in known if any(matches(job, name) for name in ids)]
    if not found and len(ids) == 1:
        raise StopError(1, "slurm_load_jobs error: Invalid job id specified")
    return found


def matches(job: Job, name: str) -> bool:
    return job.shown_id == name or name in (job.id, job["array"])


def is_user(name: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def group(found: list[Job], *, apart: bool) -> list[Row]:
    """A row a job; pending tasks of one array, waiting for one reason, share a row."""
    rows: list[Row] = []
    shared: dict[tuple[str, str], Row] = {}
    for job in found:
        key = (job["array"], job["reason"])
        if apart or not job["array"] or job["state"] != "PENDING":
            rows.append(Row(job))
        elif key in shared:
            shared[key].tasks.append(job["task"])
        else:
            shared[key] = Row(job, [job["task"]])
            rows.append(shared[key])
    return rows


def read_layout(layout: str) -> list[tuple[str, int, bool, str]]:
    """%.18i text -> the letter, its width, whether it stands right, and the text after it."""
    fields = []
    pieces = layout.split("%")
    if pieces[0]:
        fields.append(("", 0, False, pieces[0]))
    for piece in pieces[1:]:
        right = piece.startswith(".")
        rest = piece.lstrip(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        letter, text = rest[len(digits) : len(digits) + 1], rest[len(digits) + 1 :]
        fields.append((letter, int(digits or 0), right, text))
    return fields


def read_names(text: str) -> list[tuple[str, int, bool, str]]:
    """jobid:10,name -> as read_layout gives it; a column is 20 wide unless it says otherwise."""
    fields = []
    for word in text.split(","):
        name, _, width = word.strip().partition(":")
        letter = NAMES.get(name.lower())
        if letter is None:
            raise StopError(1, f"squeue: error: Invalid job format specification: {name}")
        fields.append((letter, int(width.strip(".") or 20), width.startswith("."), ""))
    return fields


def show(fields: list[tuple[str, int, bool, str]], values: list[str]) -> str:
    line = ""
    for (_, width, right, text), value in zip(fields, values, strict=True):
        if width:
            value = value[:width]
            value = value.rjust(width) if right else value.ljust(width)
        line += value + text
    return line


def show_steps(place: Place, found: list[Job], options: Options, now: float) -> int:
    """squeue --steps: the steps that run."""
    fields = read_layout(options.get("format") or STEPS)
    headings = {**HEADINGS, "i": "STEPID", "M": "TIME"}
    if "noheader" not in options:
        print(show(fields, [headings.get(letter, "") for letter, *_ in fields]))
    for job in found:
        for step in Jobs(place).steps(job.id):
            if step["state"] == "RUNNING":
                values = {
                    "i": f"{job.shown_id}.{step.id}", "j": step["name"], "P": job["partition"], "u": job["user"],
                    "M": show_short(step.elapsed(now)), "N": step["nodelist"],
                }  # fmt: skip
                print(show(fields, [values.get(letter, "") for letter, *_ in fields]))
    return 0
