"""Turns what is wrong with an input into problems that name the place, the value and the way out.

The errors that gen raises on purpose; everything else is a bug and keeps its traceback:

    GenError                 exit code 2
     +-- SpecError           what the job spec says (.problems)
     +-- CatalogError        what the cluster catalog says (.problems)
     +-- BundleConflict      files of the output folder that gen did not write (.files)
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

SHOWN_LENGTH = 80
MESSAGE_LENGTH = 400


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
    near = difflib.get_close_matches(name.lower().replace("-", "_"), tuple(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def find_problems(
    error: ValidationError, model: type[BaseModel], *, name: str, lines: Mapping[str, int] | None = None, root: str = ""
) -> tuple[Problem, ...]:
    """Put pydantic's errors into our words.

    `name` is the file's, `lines` maps fields to lines, `root` is the place of the model inside the file.
    """
    found = []
    for detail in error.errors(include_url=False):
        field = join_place(root, detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, FieldProblems):
            found += [Problem(place_of(name, field + part, lines), shorten(message)) for part, message in cause.parts]
        else:
            found.append(Problem(place_of(name, field, lines), shorten(explain_error(detail, model))))
    return tuple(found)


def shorten(message: str) -> str:
    """Cut the middle out of a message about a very long value; the way out stands at the end."""
    if len(message) <= MESSAGE_LENGTH:
        return message
    return f"{message[: MESSAGE_LENGTH // 2]} ... {message[-MESSAGE_LENGTH // 2 :]}"


def join_place(root: str, parts: Sequence[str | int]) -> str:
    """Join the parts of a place: `slurm_env`, `partitions`, 1, `name` is `slurm_env.partitions[1].name`."""
    for part in parts:
        root += f"[{part}]" if isinstance(part, int) else f".{part}" if root else part
    return root


def explain_error(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Give our message for one of pydantic's errors."""
    value, context, kind = detail["input"], detail.get("ctx", {}), detail["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "extra_forbidden":
        return explain_unknown(detail["loc"], model)
    explain = EXPLANATIONS.get(kind)
    if explain is None:
        return f"{describe_value(value)} is not allowed here ({detail['msg']})"
    return explain(value, context)


def explain_unknown(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    """Say that a field is unknown, with the nearest one of the same object, or the object that has it."""
    owner = model
    for part in loc[:-1]:
        # Indices and the keys of a mapping lead to no other model.
        if isinstance(part, str) and part in owner.model_fields:
            owner = next(iter(inner_models(owner.model_fields[part].annotation)), owner)
    name = str(loc[-1])
    near = name_nearest(name, owner.model_fields)
    if not near and owner is model:
        homes = [
            f"{field}.{name}"
            for field, info in model.model_fields.items()
            if any(name in inner.model_fields for inner in inner_models(info.annotation))
        ]
        near = f"; did you mean {homes[0]!r}?" if homes else ""
    return f"unknown field{near or '; take it out (the JSON Schema lists every known one)'}"


def inner_models(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Find the models in an annotation such as `tuple[Partition, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(model for part in get_args(annotation) for model in inner_models(part))


def explain_integer(value: object, _: Mapping[str, Any]) -> str:
    said = f"expected an integer, got {describe_value(value)}"
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
        return f"{said}; write {int(value)} without quotes"
    if isinstance(value, float) and value.is_integer():
        return f"{said}; write {int(value)}"
    return f"{said}; write a whole number such as 8"


def explain_boolean(value: object, _: Mapping[str, Any]) -> str:
    said = f"expected true or false, got {describe_value(value)}"
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return f"{said}; write {value.lower()} without quotes"
    return f"{said}; write true or false without quotes"


def explain_string(value: object, _: Mapping[str, Any]) -> str:
    said = f"expected a string, got {describe_value(value)}"
    if isinstance(value, (bool, int, float)):
        return f'{said}; write "{show_value(value)}" in quotes'
    return f"{said}; write a text in quotes"


def explain_literal(value: object, context: Mapping[str, Any]) -> str:
    allowed = [word for word in context["expected"].replace("'", "").replace(" or ", ", ").split(", ") if word]
    near = name_nearest(value, allowed) if isinstance(value, str) else ""
    return f"{show_value(value)} is not allowed; give one of {', '.join(allowed)}{near}"


# One row for each kind of error that the fields of gen can meet; the keys are pydantic's.
EXPLANATIONS: Mapping[str, Callable[[object, Mapping[str, Any]], str]] = {
    "int_type": explain_integer,
    "bool_type": explain_boolean,
    "string_type": explain_string,
    "literal_error": explain_literal,
    "greater_than_equal": lambda value, context: f"{show_value(value)} is not allowed; give {context['ge']} or more",
    "less_than_equal": lambda value, context: f"{show_value(value)} is not allowed; give {context['le']} or less",
    "model_type": lambda value, _: f'expected an object, got {describe_value(value)}; write {{"name": value}}',
    "dict_type": lambda value, _: f'expected an object, got {describe_value(value)}; write {{"name": value}}',
    "tuple_type": lambda value, _: f'expected an array, got {describe_value(value)}; write ["a", "b"]',
    "missing": lambda _value, _context: "missing; give a value",
}
