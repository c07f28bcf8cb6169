"""Where a practice cluster is: the folder of a run, what is in it, and whether its keeper is alive.

bin/local bin/login bin/node   the stand-ins, by the side that they run on
home/                          the home directory of the local side
cluster/                       the root of the cluster's file system; cluster/home/USER is home on the login node
slurm/                         what Slurm would know: site, jobs/, steps/, spool/
faults counts/                 what goes wrong in this run, and how often each fault has struck
clock events.jsonl sent/       the time; each call that was made; what was sent through ssh
origin.git                     what pushes and fetches go to
"""

import os
import sys

from slurm_bundle.rehearsal.standins.records import Lock, is_locked


class Place:
    """The folder of a practice cluster, as seen from a side: local, login or node."""

    def __init__(self, root: str, side: str) -> None:
        self.root = root
        self.side = side
        self.slurm = f"{root}/slurm"
        self.cluster = f"{root}/cluster"
        self.tmp = f"{root}/tmp"
        self.clock = f"{root}/clock"
        self.notes: dict[str, object] = {}  # what a stand-in adds to the record of its call

    def lock(self) -> Lock:
        return Lock(f"{self.slurm}/lock")

    def bin(self, side: str) -> str:
        return f"{self.root}/bin/{side}"

    def home_there(self) -> str:
        return f"{self.cluster}/home/{user_name()}"

    def touch(self) -> None:
        """Tell the keeper that something has changed."""
        with open(f"{self.slurm}/changed", "ab") as file:
            file.write(b".")

    def note_group(self, group: int) -> None:
        """Write down a process group, so that the keeper can end it where orphans are not adopted."""
        with open(f"{self.root}/groups", "a") as file:
            file.write(f"{group}\n")

    def is_alive(self) -> bool:
        return is_locked(f"{self.root}/keeper.lock")

    def die_with_keeper(self) -> None:
        """Where the run is over, nothing of it may go on: end this process, and those that it came with."""
        if not self.is_alive():
            os.killpg(0, 9)


def user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def group_name() -> str:
    import grp

    try:
        return grp.getgrgid(os.getgid()).gr_name
    except KeyError:
        return str(os.getgid())


def complain(text: str) -> None:
    """Say something on stderr, at once; where nobody listens any more, so be it."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        return


class StopError(Exception):
    """Ends a stand-in with an exit code, after saying why on stderr."""

    def __init__(self, code: int, *lines: str) -> None:
        self.code = code
        self.lines = lines
