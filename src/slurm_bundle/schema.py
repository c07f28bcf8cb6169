"""Turns the fields of a spec into its JSON Schema (draft 2020-12), for editors and other programs."""

import ast
import inspect
from itertools import pairwise
from typing import Any

from slurm_bundle import fields
from slurm_bundle.spec import DROPPED, IGNORED


def spec_schema() -> dict[str, Any]:
    """Give the schema, with a description of each field."""
    schema = fields.Spec.model_json_schema()
    for model, descriptions in read_descriptions().items():
        described = schema if model == "Spec" else schema["$defs"].get(model)
        for name, text in descriptions.items() if described else ():
            described["properties"][name]["description"] = text
    schema["properties"] = {
        IGNORED: {"type": "string", "description": "Where this schema is; for editors, gen ignores it."},
        **schema["properties"],
        DROPPED: {"description": "Never stored: dropped with a warning.", "deprecated": True},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "gen job spec"}


def read_descriptions() -> dict[str, dict[str, str]]:
    """Give the doc string under each field, by model and field.

    pydantic would collect them, too (use_attribute_docstrings), but whenever fields.py is imported: each command would
    wait for it, and only `gen schema` shows them.
    """
    found: dict[str, dict[str, str]] = {}
    for model in ast.parse(inspect.getsource(fields)).body:
        if isinstance(model, ast.ClassDef):
            found[model.name] = {}
            for line, below in pairwise(model.body):
                match line, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[model.name][name] = inspect.cleandoc(text)
    return found
