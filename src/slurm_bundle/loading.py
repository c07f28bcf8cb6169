"""Turns the text of a template into one that can be rendered, or says which of Jinja's traps it holds, and where.

The traps, each refused when the template is loaded, with its name and line:

- A value goes into a script without a quoting filter.
- A name is used that no plan has. Jinja's StrictUndefined would find that, but only where the line is rendered.
- `{#` is no comment here, since `${#array[@]}` is bash: ours are {## ... ##}. `${##` would begin one and be swallowed.
- Anything but a hole, an if or a for: Jinja can do more, and what it does then is not checked here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template, TemplateAssertionError, nodes

from slurm_bundle.quoting import FILTERS, Quoted, QuotingError

TAG = re.compile(r"\{\{|\{%|\{##")
COMMENT_TRAP = re.compile(r"\$\{##|(?<!\$)\{#(?!#)")
# A Scope has no line, and what is in it is looked at.
ALLOWED = (
    *(nodes.Template, nodes.Scope, nodes.TemplateData, nodes.Output, nodes.If, nodes.For),
    *(nodes.Filter, nodes.Name, nodes.Not, nodes.And, nodes.Or),
)


@dataclass(frozen=True, eq=False)
class CheckedTemplate:
    """A template without traps, and the names that it uses. Where it has no tags at all, it is what it gives."""

    path: str
    names: frozenset[str]
    text: str
    template: Template | None

    def render(self, holes: Mapping[str, Any]) -> str:
        return self.text if self.template is None else self.template.render(holes)


@cache
def load_template(folder: Path, path: str, names: frozenset[str]) -> CheckedTemplate:
    """Load a template of a folder, once; `names` are those that a plan gives it.

    Raises TemplateSyntaxError (its subclass TemplateAssertionError for a trap), with name and line.
    """
    text = (folder / path).read_text(encoding="utf-8")
    place = str(folder / path)
    if trap := COMMENT_TRAP.search(text):
        line = text.count("\n", 0, trap.start()) + 1
        message = f"{trap[0]} here: a comment is {{## ... ##}}, a length of bash is ${{#name}}"
        raise TemplateAssertionError(message, line, path, place)
    if not TAG.search(text):
        return CheckedTemplate(path, frozenset(), text, None)
    environment = make_environment()
    tree = environment.parse(text, path, place)
    for line, message in find_traps(tree, names):
        raise TemplateAssertionError(message, line, path, place)
    used = frozenset(name.name for name in tree.find_all(nodes.Name)) & names
    template = Template.from_code(environment, environment.compile(tree, path, place), {})
    return CheckedTemplate(path, used, text, template)


def find_traps(node: nodes.Node, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Give line and message of each trap in a template or a part of it."""
    inside = names
    match node:
        case nodes.Name(name=name, ctx="load") if name not in names:
            yield node.lineno, f"no plan has {name!r}"
        case nodes.Output(nodes=parts):
            for part in parts:
                # No filters but those that quote are known (make_environment).
                if not isinstance(part, nodes.TemplateData | nodes.Filter):
                    yield part.lineno, "a value goes into the script without a quoting filter"
        case nodes.For(target=nodes.Name(name=name), iter=iterated):
            yield from find_traps(iterated, names)
            inside = names | {name}
        case _ if not isinstance(node, ALLOWED):
            yield node.lineno, f"{type(node).__name__} is no hole, if or for; what needs more goes to plan.py"
            return
    for child in node.iter_child_nodes(exclude=("iter",)):
        yield from find_traps(child, inside)


@cache
def make_environment() -> Environment:
    """The rules for templates: an unknown name is an error, and so is what a filter did not quote; no HTML."""
    environment = Environment(
        undefined=StrictUndefined,
        finalize=refuse_unquoted,
        autoescape=False,
        optimized=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="{##",
        comment_end_string="##}",
    )
    environment.filters = dict(FILTERS)
    return environment


def refuse_unquoted(value: object) -> object:
    if not isinstance(value, Quoted):
        raise QuotingError(f"a template puts {value!r} into a script without a quoting filter")
    return value
