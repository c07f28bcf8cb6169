"""Turns what is wrong with an input into problems that name the place, the value and the way out.

The errors that gen raises on purpose; everything else is a bug and keeps its traceback:

    GenError                 exit code 2
     +-- SpecError           what the job spec says (.problems)
     +-- CatalogError        what the cluster catalog says (.problems)
     +-- BundleConflict      files of the output folder that gen did not write (.files)
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

SHOWN_LENGTH = 80


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong (or worth saying), at one place.

    `place` is like `job_spec.json:12: node_count`, or `job_spec.json: ssh_host` where no line can be named.
    """

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class GenError(Exception):
    """An error that the user can mend; its text is shown as it is, without a traceback."""

    exit_code = 2


class ProblemsError(GenError):
    """An input with at least one problem; all of them are in `problems`, in the order of the input."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SpecError(ProblemsError):
    """The job spec cannot be used as it is."""


class CatalogError(ProblemsError):
    """The cluster catalog cannot be used as it is."""


class BundleConflict(GenError):  # noqa: N818 - a conflict is the word that users know from copier and git
    """The output folder holds files that gen did not write or that were edited since; they are in `files`."""

    def __init__(self, files: Iterable[PurePath], message: str | None = None) -> None:
        self.files = tuple(files)
        names = ", ".join(str(file) for file in self.files)
        super().__init__(message or f"not overwritten: {names}; move them away or give another output folder")


class FieldProblems(ValueError):  # noqa: N818 - it is a list of problems, caught by pydantic
    """Several problems inside the value of one field: pairs of a place in it (`[1]`, `.NAME`) and a message."""

    def __init__(self, parts: Iterable[tuple[str, str]]) -> None:
        self.parts = tuple(parts)
        super().__init__("; ".join(f"{place} {message}".strip() for place, message in self.parts))


def place_of(name: str, field: str, lines: Mapping[str, int] | None = None) -> str:
    """Give the place of a field: file name, line where known (a part without a line has its parent's), field."""
    known, part, field = lines or {}, field, show_text(field)
    while part and part not in known:
        part = part[: max(part.rfind("."), part.rfind("["), 0)]
    if part:
        return f"{name}:{known[part]}: {field}"
    return f"{name}: {field}" if field else name


def show_value(value: object) -> str:
    """Give a value as JSON on one line, cut after 80 characters."""
    text = show_text(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 4] + " ..."


def show_text(text: str) -> str:
    """Give a text with everything that cannot be seen as an escape."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def describe_value(value: object) -> str:
    """Say what kind of JSON value this is, with the value: `the string "8"`, `null`, `an array`."""
    match value:
        case None:
            return "null"
        case bool():
            return show_value(value)
        case str():
            return f"the string {show_value(value)}"
        case int() | float():
            return f"the number {show_value(value)}"
        case list() | tuple():
            return f"the array {show_value(value)}"
        case dict():
            return f"the object {show_value(value)}"
        case _:
            return f"the value {value}"


def name_nearest(name: str, known: Iterable[str]) -> str:
    """Give `; did you mean 'x'?` for the nearest known name, or nothing where none is near."""
    import difflib  # only who has mistyped something needs it

    near = difflib.get_close_matches(name.lower().replace("-", "_"), tuple(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def join_place(root: str, parts: Sequence[str | int]) -> str:
    """Join the parts of a place: `slurm_env`, `partitions`, 1, `name` is `slurm_env.partitions[1].name`."""
    for part in parts:
        root += f"[{part}]" if isinstance(part, int) else f".{part}" if root else part
    return root
