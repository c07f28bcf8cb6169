"""Turns values into text that means just the value where it lands: in bash, in a #SBATCH line, in a comment.

The only place that quotes. Each function here is a filter of the templates; what passed none is refused by render.py.
"""

import re
from collections.abc import Iterable
from typing import Protocol

# A directive is no shell (man sbatch): Slurm splits at blanks, cuts at #, knows double quotes and nothing else.
DIRECTIVE = re.compile(r"--[a-z][a-z-]*(=[A-Za-z0-9_.,:+@%/=*&|()\[\] -]*)?")


class QuotingError(ValueError):
    """A value that cannot stand where it was to stand; its text names the value."""


class Quoted(str):
    """Text that has been made safe for its place."""

    __slots__ = ()


class Named(Protocol):
    """A value with the name it has in config.sh, what it means and where it came from."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | int | tuple[str, ...]: ...
    @property
    def meaning(self) -> str: ...
    @property
    def origin(self) -> str: ...


def quote_word(text: str) -> Quoted:
    """Quote for bash 3.2 and later: in single quotes, or as $'...' where characters cannot be seen.

    Also as $'...' where a backslash would stand before a quote, as if it were meant to escape it (SC1003).
    Source: the QUOTING section of bash(1). Raises QuotingError for NUL, which no shell word can hold.
    """
    if "\0" in text:
        raise QuotingError(f"{text!r} holds a NUL character, which no shell variable can hold")
    if text.isprintable() and not re.search(r"\\('|$)", text):
        return Quoted("'" + text.replace("'", "'\\''") + "'")
    return Quoted("$'" + "".join(escape_character(char) for char in text) + "'")


def escape_character(char: str) -> str:
    """Give a character as it is written between $' and '."""
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    return plain or "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def sh(value: str | int | tuple[str, ...]) -> Quoted:
    """Quote a word, a number or an array for the right side of an assignment."""
    if isinstance(value, tuple):
        return Quoted("(" + " ".join(quote_word(word) for word in value) + ")")
    return quote_word(value) if isinstance(value, str) else Quoted(str(value))


def sh_home(path: str) -> Quoted:
    """Quote a path, with a leading ~ as "$HOME" of whoever runs the script."""
    if path == "~":
        return Quoted('"$HOME"')
    if path.startswith("~/"):
        return Quoted('"$HOME"' + quote_quietly(path[1:]))
    return quote_quietly(path)


def sh_list_home(paths: Iterable[str]) -> Quoted:
    """Quote a comma list of paths or mounts as one word, each with a leading ~ as "$HOME"."""
    return Quoted(",".join(sh_mount(path) for path in paths) or "''")


def sh_mount(text: str) -> Quoted:
    """Quote a path or SRC:DST[:FLAGS], with a leading ~ of each part as "$HOME"."""
    if ":~" not in text and not text.startswith("~:"):
        return sh_home(text)
    return Quoted(":".join(sh_home(part) for part in text.split(":")))


def quote_quietly(text: str) -> Quoted:
    """Quote as quote_word does, but as $'...' where shellcheck would ask whether $, ` or ~ was meant to expand.

    In config.sh that question is answered once for the file; a script for the nodes has no such line.
    """
    plain = quote_word(text)
    if plain.startswith("$'") or not (set(text) & set("$`") or text.startswith("~")):
        return plain
    return Quoted("$'" + "".join(escape_character(char) for char in text) + "'")


def assign(pair: tuple[str, str]) -> Quoted:
    """Write NAME='value', in a script for the nodes."""
    return Quoted(f"{variable(pair[0])}={quote_quietly(pair[1])}")


def assignment(setting: Named) -> Quoted:
    """Write a setting as NAME=value on one line."""
    return Quoted(f"{variable(setting.name)}={sh(setting.value)}")


def variable(name: str) -> Quoted:
    """Check the name of a shell variable."""
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        raise QuotingError(f"{name!r} is no name of a shell variable")
    return Quoted(name)


def comment(text: str) -> Quoted:
    """Write text into a comment: a newline would begin a command, so what cannot be seen is shown as an escape."""
    if text.isprintable():
        return Quoted(text)
    return Quoted("".join(char if char.isprintable() else escape_character(char) for char in text))


def remark(setting: Named) -> Quoted:
    """Write what a setting means and where it came from, as a comment."""
    return comment(f"{setting.meaning} ({setting.origin})")


def sbatch(option: str) -> Quoted:
    """Write an option after #SBATCH, in double quotes where it holds a blank or a character that Slurm might read.

    Raises QuotingError for what Slurm would cut, expand or drop (man sbatch; tried with 22.05).
    """
    if not DIRECTIVE.fullmatch(option):
        raise QuotingError(f"{option!r} cannot stand in a #SBATCH line; use letters, digits and _ . , : + @ / = - only")
    name, equals, value = option.partition("=")
    return Quoted(f'{name}="{value}"' if re.search(r"[^A-Za-z0-9_.,:+@%/=-]", value) else name + equals + value)


def verbatim(text: str) -> Quoted:
    """Let the user's own text stand as it is, without the newlines at its end."""
    if "\0" in text:
        raise QuotingError("the text holds a NUL character")
    return Quoted(text.rstrip("\n"))


FILTERS = {
    function.__name__: function
    for function in (sh, sh_home, sh_list_home, assign, assignment, comment, remark, sbatch, verbatim)
}
