"""Records: small text files of NAME=value lines, written whole or not at all; and the lock that guards them."""

import fcntl
import os


def load_record(path: str) -> dict[str, str]:
    """The record in `path`; an empty one where there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in text.split("\n") if line)
    return {name: unescape(value) for name, _, value in pairs}


def store_record(path: str, record: dict[str, str]) -> None:
    text = "".join(f"{name}={escape(value)}\n" for name, value in record.items())
    write_whole(path, text.encode("utf-8", "surrogateescape"))


def write_whole(path: str, data: bytes) -> None:
    """Write beside and rename, so that a reader sees the old or the new."""
    new = f"{path}.{os.getpid()}.new"
    with open(new, "wb") as file:
        file.write(data)
    os.replace(new, path)


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def unescape(value: str) -> str:
    if "\\" not in value:
        return value
    out, characters = [], iter(value)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            character = {"n": "\n", "r": "\r"}.get(character, character)
        out.append(character)
    return "".join(out)


def json_text(value: object) -> str:
    """A text, a number, or a list or dict of those, as JSON; without the json module, which takes long to import."""
    if isinstance(value, str):
        return '"' + "".join(map(json_character, value)) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(name)}:{json_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    return "null" if value is None else repr(value)


def json_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if " " <= character < "\x7f" else f"\\u{ord(character):04x}" if ord(character) < 65536 else "?"


class Lock:
    """`with Lock(path):` - one process at a time; the kernel frees it when its owner dies."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.file)


def is_locked(path: str) -> bool:
    """Whether somebody holds the lock."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
