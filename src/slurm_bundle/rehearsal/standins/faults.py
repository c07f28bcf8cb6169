"""What goes wrong: a line of NAME=value fields, divided by tabs, for each fault of the scenario, in PLACE/faults.

    on=COMMAND          the call that it strikes
    side= match=        only on that side; only with that among its words
    while=KIND          only while a job of this kind (build, job) is pending or running
    after=N times=N     it lets the first N pass, and strikes so often (times=0: from then on always)
    delay=SECONDS       how long the call takes, by the clock there
    err= out= code=     what it says, and how it ends
    do=yes              the call does its work all the same, and only its answer is lost
    noise=yes           the call goes its way after it has said `out` and `err`
    drop=BYTES          ssh: the connection breaks after so many bytes of what is sent
Faults of jobs (on=job), of the commands in them (on=play) and of origin are no matter of calls: keeper.py, play.py and
practice.py read those.
"""

import sys

from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.records import unescape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def read_faults(place: Place) -> list[dict[str, str]]:
    try:
        with open(f"{place.root}/faults", encoding="utf-8") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        return []
    faults = []
    for number, line in enumerate(filter(None, lines)):
        pairs = (field.partition("=") for field in line.split("\t"))
        faults.append({"number": str(number), **{name: unescape(value) for name, _, value in pairs}})
    return faults


def strike(place: Place, command: str, words: list[str]) -> dict[str, str] | None:
    """The fault that strikes this call, if one does; it is counted."""
    for fault in read_faults(place):
        if fault["on"] != command or "kind" in fault or fault.get("side", place.side) != place.side:
            continue
        if fault.get("match", "") not in " ".join(words) or not is_time(place, fault):
            continue
        with place.lock():
            count = count_call(place, fault["number"])
        first, times = int(fault.get("after", "0")), int(fault.get("times", "0"))
        if count > first and (not times or count <= first + times):
            return fault
    return None


def is_time(place: Place, fault: dict[str, str]) -> bool:
    kind = fault.get("while")
    if kind is None:
        return True
    from slurm_bundle.rehearsal.standins.jobs import Jobs

    return any(
        job["role"] in (kind, "own" if kind == "job" else kind) and not job.has_ended for job in Jobs(place).all()
    )


def count_call(place: Place, number: str) -> int:
    """How many calls this fault might have struck by now, with this one. Whoever calls holds the lock."""
    with open(f"{place.root}/counts/{number}", "ab") as file:
        file.write(b".")
        return file.tell()


def suffer(place: Place, fault: dict[str, str], perform: "Callable[[], int]") -> int:
    """Play the call as the fault has it."""
    if "delay" in fault:
        from slurm_bundle.rehearsal.standins.clock import Clock

        Clock(place).sleep(float(fault["delay"]))
    place.notes["fault"] = fault.get("name", fault["on"])
    if "drop" in fault:
        place.notes["drop"] = fault["drop"]
        return perform()
    if fault.get("do"):
        silence = sys.stdout
        with open("/dev/null", "w") as sys.stdout:
            perform()
        sys.stdout = silence
    sys.stdout.write(fault.get("out", ""))
    sys.stdout.flush()
    sys.stderr.write(fault.get("err", ""))
    sys.stderr.flush()
    return perform() if fault.get("noise") else int(fault.get("code", "1"))
