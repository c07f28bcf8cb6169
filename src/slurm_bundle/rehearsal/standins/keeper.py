"""The keeper: the one process of a practice cluster that lives as long as the rehearsal, and with which all of it ends.

Whoever started it holds its stdin: a line `run WORD...` (words divided by tabs) starts a command of the local side,
`interrupt` sends it an interrupt, and the end of stdin, however it comes about, ends every process of the rehearsal.
On its stdout is what the command says, and lines of its own, which begin with a mark: `ready`, and `ended CODE`.

On Linux it adopts orphans, so that nothing that was started below it can get away; elsewhere the process groups are
written down as they are made (PLACE/groups).
"""

import os
import select
import signal
import sys
import time

from slurm_bundle.rehearsal.standins.controller import Controller
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.records import Lock

MARK = "@@keeper "
TICK = 0.015  # seconds of ours between two looks at the queue
GRACE = 5.0  # seconds of ours for a command to tidy up after an interrupt


def run(place: Place, words: list[str]) -> int:
    with Lock(f"{place.root}/keeper.lock"):
        return Keeper(place).live()


class Keeper:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.controller = Controller(place)
        self.command = 0

    def live(self) -> int:
        adopt_orphans()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.leave)
        self.say("ready")
        typed = b""
        while True:
            if select.select([0], [], [], TICK)[0]:
                data = os.read(0, 65536)
                if not data:
                    break
                *lines, typed = (typed + data).split(b"\n")
                for line in lines:
                    self.obey(line.decode("utf-8", "surrogateescape").split("\t"))
            self.reap()
            self.controller.tick()
        sweep(self.place)
        return 0

    def leave(self, *_: object) -> None:
        sweep(self.place)
        os._exit(0)

    def say(self, text: str) -> None:
        sys.stdout.write(f"\n{MARK}{text}\n")
        sys.stdout.flush()

    def obey(self, words: list[str]) -> None:
        if words[0] == "run":
            self.command = start(self.place, words[1:])
        elif words[0] == "interrupt" and self.command:
            os.killpg(self.command, signal.SIGINT)

    def reap(self) -> None:
        """Take note of every process that has ended: the command, a job, or an orphan of theirs."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            if process == self.command:
                self.command = 0
                self.say(f"ended {os.waitstatus_to_exitcode(status)}")
            else:
                self.controller.note_end(process, os.waitstatus_to_exitcode(status))


def start(place: Place, words: list[str]) -> int:
    """Start a command of the local side in a session of its own."""
    child = os.fork()
    if child:
        place.note_group(child)
        return child
    try:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(1, 2)
        os.execvp(words[0], words)
    finally:
        os._exit(127)


def adopt_orphans() -> None:
    """On Linux: whoever loses its parent below this process becomes its child (PR_SET_CHILD_SUBREAPER)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def sweep(place: Place) -> None:
    """Kill everything that runs for this place, again and again until nothing is left."""
    end = time.monotonic() + GRACE
    while time.monotonic() < end:
        left = descendants(os.getpid())
        for process in left:
            kill(process)
        kill_groups(place)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if not left:
                return
        time.sleep(0.01)


def kill_groups(place: Place) -> None:
    """Where orphans are not adopted: the groups that were written down. A number may have been given away since."""
    if sys.platform == "linux":
        return
    try:
        with open(f"{place.root}/groups") as file:
            groups = [int(line) for line in file if line.strip().isdigit()]
    except FileNotFoundError:
        return
    mine = os.getuid()
    for line in os.popen("ps -A -o pgid=,uid=,command=").read().splitlines():
        group, owner, command = [*line.split(None, 2), "", "", ""][:3]
        if group.isdigit() and int(group) in groups and int(group) != os.getpgid(0) and owner == str(mine) and command:
            try:
                os.killpg(int(group), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def descendants(root: int) -> list[int]:
    """The processes below `root`."""
    children: dict[int, list[int]] = {}
    for process, parent in processes():
        children.setdefault(parent, []).append(process)
    found, queue = [], [root]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def processes() -> list[tuple[int, int]]:
    """Every process with its parent; without those that have ended."""
    if not os.path.exists("/proc/self/stat"):
        lines = os.popen("ps -A -o pid=,ppid=,stat=").read().splitlines()
        rows = [line.split() for line in lines]
        return [(int(row[0]), int(row[1])) for row in rows if len(row) > 2 and not row[2].startswith("Z")]
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if fields[0] != b"Z":
                found.append((int(name), int(fields[1])))
    return found
