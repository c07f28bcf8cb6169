"""tmux, where there is no real one: sessions without a terminal, whose commands run on and write to a file."""

import os

from slurm_bundle.rehearsal.standins.getopt import Options, Parser
from slurm_bundle.rehearsal.standins.place import Place, StopError

COMMANDS = {
    "new-session": "A. d. s= n= x= y= c= P. E. e=", "has-session": "t=", "kill-session": "a. t=",
    "list-sessions": "F= f=", "kill-server": "", "capture-pane": "a. e. p. t= S= E= J.", "send-keys": "t= l. R.",
    "set-option": "g. t= q.",
}  # fmt: skip
SHORT = {
    "new": "new-session",
    "has": "has-session",
    "ls": "list-sessions",
    "capturep": "capture-pane",
    "send": "send-keys",
    "set": "set-option",
}


def run(place: Place, words: list[str]) -> int:
    queue = list(words)
    while queue and queue[0] in ("-L", "-S", "-f"):
        queue = queue[2:]
    if queue[:1] == ["-V"]:
        print("tmux 3.3a")
        return 0
    name = SHORT.get(queue[0], queue[0]) if queue else "new-session"
    if name not in COMMANDS:
        raise StopError(1, f"unknown command: {name}")
    table = " ".join(word[:-1] + "x" + word[-1] + word[:-1] for word in COMMANDS[name].split())
    options = Parser(f"tmux {name}", table).parse(queue[1:])
    folder = f"{place.root}/tmux"
    os.makedirs(folder, exist_ok=True)
    return Tmux(place, folder, options).do(name)


class Tmux:
    """The sessions: a file each, with the process; next to it what it has said."""

    def __init__(self, place: Place, folder: str, options: Options) -> None:
        self.place, self.folder, self.options = place, folder, options

    def do(self, name: str) -> int:
        if name == "new-session":
            return self.begin()
        if name == "list-sessions":
            for session in self.sessions():
                print(f"{session}: 1 windows")
            return 0 if self.sessions() else self.no_server()
        if name == "kill-server":
            for session in self.sessions():
                self.end(session)
            return 0
        session = (self.options.get("tx") or "").removeprefix("=").partition(":")[0]
        if session not in self.sessions():
            raise StopError(1, f"can't find session: {session}" if self.sessions() else self.server_text())
        if name == "kill-session":
            self.end(session)
        elif name == "capture-pane":
            with open(f"{self.folder}/{session}.out") as file:
                print(file.read(), end="")
        return 0

    def server_text(self) -> str:
        return f"no server running on {self.folder}/default"

    def no_server(self) -> int:
        raise StopError(1, self.server_text())

    def sessions(self) -> list[str]:
        names = sorted(name for name in os.listdir(self.folder) if not name.endswith(".out"))
        return [name for name in names if self.is_running(name)]

    def process_of(self, session: str) -> int:
        with open(f"{self.folder}/{session}") as file:
            return int(file.read() or 0)

    def is_running(self, session: str) -> bool:
        try:
            os.kill(self.process_of(session), 0)
        except (ProcessLookupError, FileNotFoundError):
            return False
        return True

    def begin(self) -> int:
        session = self.options.get("sx") or "0"
        if session in self.sessions():
            raise StopError(1, f"duplicate session: {session}")
        command = " ".join(self.options.rest) or os.environ.get("SHELL", "/bin/sh")
        child = os.fork()
        if not child:
            os.setsid()
            out = os.open(f"{self.folder}/{session}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for file, target in ((os.open("/dev/null", os.O_RDONLY), 0), (out, 1), (out, 2)):
                os.dup2(file, target)
            os.chdir(self.options.get("cx") or os.getcwd())
            os.execv("/bin/sh", ["sh", "-c", command])
        with open(f"{self.folder}/{session}", "w") as note:
            note.write(str(child))
        self.place.note_group(child)
        return 0

    def end(self, session: str) -> None:
        try:
            os.killpg(self.process_of(session), 1)
        except ProcessLookupError:
            pass
        os.remove(f"{self.folder}/{session}")
