"""The time on the practice cluster, which runs faster than ours; and sleep, date and timeout, which keep to it.

PLACE/clock holds three numbers: a time of ours, the time there at that moment, and how many seconds pass there in one
of ours. To make time fly, the second is moved on.
"""

import os
import time

from slurm_bundle.rehearsal.standins.place import Place, StopError
from slurm_bundle.rehearsal.standins.records import write_whole

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Clock:
    def __init__(self, place: Place) -> None:
        self.place = place

    def read(self) -> tuple[float, float, float]:
        with open(self.place.clock) as file:
            ours, theirs, factor = map(float, file.read().split())
        return ours, theirs, factor

    def now(self) -> float:
        """Seconds since 1970, there."""
        ours, theirs, factor = self.read()
        return theirs + (time.time() - ours) * factor

    def set(self, now: float, factor: float) -> None:
        write_whole(self.place.clock, f"{time.time()!r} {now!r} {factor!r}\n".encode())

    def skip(self, seconds: float) -> None:
        """Let this many seconds pass at once."""
        self.set(self.now() + seconds, self.read()[2])

    def sleep(self, seconds: float) -> None:
        """Wait this long by the clock there; ends with the run."""
        end = self.now() + seconds
        while (left := end - self.now()) > 0:
            self.place.die_with_keeper()
            time.sleep(min(left / self.read()[2], 0.05))


def run_sleep(place: Place, words: list[str]) -> int:
    """sleep NUMBER[smhd]..."""
    if not words:
        raise StopError(1, "sleep: missing operand", "Try 'sleep --help' for more information.")
    total = 0.0
    for word in words:
        number, unit = (word[:-1], word[-1]) if word[-1:] in UNITS else (word, "s")
        try:
            total += float(number) * UNITS[unit]
        except ValueError:
            raise StopError(1, f"sleep: invalid time interval '{word}'") from None
    Clock(place).sleep(total)
    return 0


def run_date(place: Place, words: list[str]) -> int:
    """date [-u] [-d @SECONDS | -r FILE] [+FORMAT]; what goes beyond that is for the real one."""
    moment, layout, universal, queue = Clock(place).now(), "%a %b %e %H:%M:%S %Z %Y", False, list(words)
    while queue:
        word = queue.pop(0)
        if word in ("-u", "--utc"):
            universal = True
        elif word.startswith("+") and "%N" not in word:
            layout = word[1:]
        elif word == "-d" and queue and queue[0][:1] == "@" and queue[0][1:].isdigit():
            moment = float(queue.pop(0)[1:])
        elif word == "-r" and queue and os.path.exists(queue[0]):
            moment = os.stat(queue.pop(0)).st_mtime
        else:
            find_real(place, "date", words)
    parts = time.gmtime(moment) if universal else time.localtime(moment)
    print(time.strftime(layout.replace("%s", str(int(moment))), parts))
    return 0


def run_timeout(place: Place, words: list[str]) -> int:
    """timeout [--kill-after=...] SECONDS COMMAND...: by our clock, as a command takes the time that it takes."""
    while words[0].startswith("-"):
        words = words[1:]
    number, unit = (words[0][:-1], words[0][-1]) if words[0][-1:] in UNITS else (words[0], "s")
    end = time.monotonic() + float(number) * UNITS[unit]
    child = os.fork()
    if not child:
        try:
            os.execvp(words[1], words[1:])
        except OSError as error:
            os.write(2, f"timeout: failed to run command '{words[1]}': {error.strerror}\n".encode())
        os._exit(127)
    pause = 0.001
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        place.die_with_keeper()
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 124


def find_real(place: Place, name: str, words: list[str]) -> None:
    """Become the real command of this name: the first on PATH that is no stand-in."""
    for folder in os.environ.get("PATH", "").split(":"):
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK) and not os.path.realpath(path).startswith(f"{os.path.realpath(place.root)}/bin/"):
            os.execv(path, [name, *words])
    raise StopError(127, f"{name}: command not found")
