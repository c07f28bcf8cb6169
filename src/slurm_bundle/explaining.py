"""Turns pydantic's errors into problems in our words: the place, the value, the way out."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from slurm_bundle.problems import (
    FieldProblems,
    Problem,
    describe_value,
    join_place,
    name_nearest,
    place_of,
    show_value,
)

MESSAGE_LENGTH = 400


def find_problems(
    error: ValidationError, model: type[BaseModel], *, name: str, lines: Mapping[str, int] | None = None, root: str = ""
) -> tuple[Problem, ...]:
    """Give a problem for each error.

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
