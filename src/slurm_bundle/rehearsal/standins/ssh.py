"""ssh: runs a command as another machine would: another home, nothing of the environment here, another session.

What is sent (stdin) passes through here, as it does in the real one, and is kept in PLACE/sent. A connection that is
kept open (-M) is a file at its ControlPath. What the faults of the scenario may do to a connection: faults.py.

PLACE/hosts is a record: the name of a host, and the login shell there; a site that asks for a second factor has
mfa=yes in it. Any other host has bash and takes a key alone.
"""

import os
import select
import time

from slurm_bundle.rehearsal.standins.environment import path_for, plain_environment
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain, user_name
from slurm_bundle.rehearsal.standins.records import load_record

FLAGS = "46AaCfGgKkMNnqsTtVvXxYy"
VALUES = "BbcDEeFIiJLlmOopQRSWw"
KEPT = 262144  # bytes of what is sent that are kept


class Call:
    """The command line: options by letter, -o by its name in lower case, the host and the command."""

    def __init__(self, words: list[str]) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        queue = list(words)
        self.host = ""
        while queue and (queue[0].startswith("-") or not self.host):
            word = queue.pop(0)
            if word == "--":
                continue
            if word.startswith("-"):
                self.read(word[1:], queue)
            else:
                self.host = word
        self.command = queue

    def read(self, letters: str, queue: list[str]) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in VALUES:
                value = letters or (queue.pop(0) if queue else "")
                if not value:
                    raise StopError(255, f"ssh: option requires an argument -- {letter}", *USAGE)
                self.values[letter] = value
                letters = ""
                if letter == "o":
                    name, _, setting = value.replace(" ", "=", 1).partition("=")
                    self.settings.setdefault(name.lower(), setting.strip())
            elif letter in FLAGS:
                self.flags.add(letter)
            else:
                raise StopError(255, f"ssh: unknown option -- {letter}", *USAGE)


USAGE = ("usage: ssh [options] destination [command [argument ...]]",)


class Session:
    def __init__(self, place: Place, call: Call) -> None:
        self.place, self.call = place, call
        user, at, host = call.host.rpartition("@")
        self.host = host if at else call.host
        self.user = call.values.get("l") or user or user_name()
        known = load_record(f"{place.root}/hosts")
        self.shell = known.get(self.host, "bash")
        self.asks_more = known.get("mfa") == "yes"

    @property
    def control_path(self) -> str:
        """Where the connection is, or would be, kept open; %C as one word, since what it hashes is no matter."""
        path = self.call.values.get("S") or self.call.settings.get("controlpath", "none")
        if path == "none":
            return ""
        known = {"%C": f"{hash_of(f'{self.user}@{self.host}'):016x}", "%h": self.host, "%n": self.host, "%r": self.user}
        for mark, value in {**known, "%p": "22"}.items():
            path = path.replace(mark, value)
        return os.environ.get("HOME", "") + path[1:] if path.startswith("~/") else path

    def is_open(self) -> bool:
        return bool(self.control_path) and os.path.exists(self.control_path)

    def reach(self) -> None:
        """Raise StopError where no connection comes about."""
        port = self.call.values.get("p") or self.call.settings.get("port", "22")
        if self.host.endswith(".invalid"):
            raise StopError(255, f"ssh: Could not resolve hostname {self.host}: Name or service not known")
        if port != "22":
            raise StopError(255, f"ssh: connect to host {self.host} port {port}: Connection refused")
        if self.call.settings.get("identityfile") == "/dev/null":
            raise StopError(255, f"{self.user}@{self.host}: Permission denied (publickey).")
        if self.asks_more and not self.is_open() and "f" not in self.call.flags:
            raise StopError(255, f"{self.user}@{self.host}: Permission denied (publickey,keyboard-interactive).")

    def control(self, word: str) -> int:
        """-O check, exit and stop."""
        path = self.control_path
        if not self.is_open():
            complain(
                f"Control socket connect({path}): No such file or directory"
                if path
                else 'No ControlPath specified for "-O" command'
            )
            return 255
        with open(path) as file:
            process = file.read().strip()
        if word == "check":
            complain(f"Master running (pid={process})")
            return 0
        os.remove(path)
        complain({"exit": "Exit request sent.", "stop": "Stop listening request sent."}.get(word, ""))
        return 0

    def keep_open(self) -> int:
        """-f -N -M: somebody logs in, and the connection stays for others."""
        if self.control_path:
            os.makedirs(os.path.dirname(self.control_path), mode=0o700, exist_ok=True)
            with open(self.control_path, "w") as file:
                file.write(f"{os.getpid()}\n")
        return 0

    def environment(self) -> dict[str, str]:
        there = Place(self.place.root, "login")
        return {
            **plain_environment(there, there.home_there(), user_name()),
            "PATH": path_for(self.place, "login", remote_path(self.place)),
            "SHELL": self.shell,
            "SSH_CLIENT": "127.0.0.1 50022 22",
            "SSH_CONNECTION": "127.0.0.1 50022 127.0.0.1 22",
        }

    def start(self, source: int, target: int | None) -> int:
        """Start the command, or a shell, in its own session at home."""
        environment = self.environment()
        shell = find(self.shell, environment["PATH"])
        words = [shell, "-c", " ".join(self.call.command)] if self.call.command else [shell, "-l"]
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            self.place.note_group(os.getpid())
            os.dup2(source, 0)
            if target is not None:
                os.dup2(target, 1)
            os.chdir(environment["HOME"])
            os.execve(shell, words, environment)
        except OSError as error:
            os.write(2, f"ssh: {shell}: {error.strerror}\n".encode())
        finally:
            os._exit(127)


def run(place: Place, words: list[str]) -> int:
    call = Call(words)
    if "V" in call.flags:
        complain("OpenSSH_9.2 (practice)")
        return 0
    if not call.host:
        raise StopError(255, *USAGE)
    session = Session(place, call)
    if "G" in call.flags:
        return tell_settings(session)
    if "O" in call.values:
        return session.control(call.values["O"])
    session.reach()
    if "N" in call.flags:
        return session.keep_open()
    place.notes["session"] = session.host
    return carry(place, session)


def tell_settings(session: Session) -> int:
    """ssh -G: what would be used."""
    print(f"host {session.host}\nuser {session.user}\nhostname {session.host}\nport 22")
    if session.control_path:
        print(f"controlpath {session.control_path}")
    return 0


def carry(place: Place, session: Session) -> int:
    """Run the command, and pass on to it what comes on stdin, until it has ended."""
    began = time.time()
    drop = place.notes.pop("drop", None)
    limit = int(str(drop)) if drop is not None else None
    read, write = os.pipe()
    answers = os.open("/dev/null", os.O_WRONLY) if limit is not None else None
    child = session.start(read, answers)
    os.close(read)
    head, total, status = pass_on(place, child, write, limit, nothing="n" in session.call.flags)
    note_sent(place, head, total)
    if limit is not None:
        complain(f"client_loop: send disconnect: Broken pipe\nConnection to {session.host} closed by remote host.")
        return 255
    if status is None:
        _, status = os.waitpid(child, 0)
    note_written(place, began)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 255


def pass_on(place: Place, child: int, write: int, limit: int | None, *, nothing: bool) -> tuple[bytes, int, int | None]:
    """Copy stdin to the command. Gives the head of what was sent, its size, and the command's status if it ended."""
    head, total, pause = b"", 0, 0.002
    status: int | None = None
    while not nothing and (limit is None or total < limit):
        if not select.select([0], [], [], pause)[0]:
            done, ended = os.waitpid(child, os.WNOHANG)
            if done:
                status = ended
                break
            place.die_with_keeper()
            pause = min(pause * 1.5, 0.05)
            continue
        data = os.read(0, 65536 if limit is None else min(65536, limit - total))
        if not data:
            break
        pause = 0.002
        total += len(data)
        head += data[: max(0, KEPT - len(head))]
        if not send(write, data):
            break
    os.close(write)
    return head, total, status


def send(write: int, data: bytes) -> bool:
    """False when nobody reads it any more."""
    import _signal

    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    try:
        while data:
            data = data[os.write(write, data) :]
    except BrokenPipeError:
        return False
    finally:
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    return True


def note_sent(place: Place, head: bytes, total: int) -> None:
    """Keep what was sent, and name it in the record of the call."""
    if not total:
        return
    folder = f"{place.root}/sent"
    name = f"{len(os.listdir(folder)) + 1:04d}"
    with open(f"{folder}/{name}", "wb") as file:
        file.write(head)
    place.notes.update(sent=f"sent/{name}", bytes=total)


def note_written(place: Place, began: float) -> None:
    """Name the files on the cluster that were made or changed since the call began; not what is inside of .git."""
    found = [path for path in walk(place.cluster) if os.lstat(path).st_ctime >= began - 0.01]
    place.notes["files"] = [path[len(place.cluster) :] for path in found[:200]]
    if len(found) > 200:
        place.notes["more_files"] = len(found) - 200


def walk(folder: str) -> list[str]:
    found = []
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            found += [f"{entry.path}/"] if entry.name == ".git" else walk(entry.path)
        else:
            found.append(entry.path)
    return sorted(found)


def remote_path(place: Place) -> str:
    """PATH on the cluster: what a system has, and where the tools are that this machine keeps elsewhere."""
    known = load_record(f"{place.root}/tools").get("path", "")
    return ":".join(filter(None, ["/usr/local/bin", "/usr/bin", "/bin", known]))


def find(name: str, path: str) -> str:
    if name.startswith("/"):
        return name
    return next(
        (f"{folder}/{name}" for folder in path.split(":") if os.access(f"{folder}/{name}", os.X_OK)), f"/bin/{name}"
    )


def hash_of(text: str) -> int:
    """A number for a text, the same in every process."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value
