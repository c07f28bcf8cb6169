"""Turns a shell script into the commands that it calls, by the syntax tree that shfmt makes of it.

What it cannot see: a command whose name is in a variable (`"${command[@]}"`), and one that another program starts by
itself, but for those of BROUGHT_ALONG. What runs on the test cluster shows the rest.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Call = tuple[str, ...]

# What stands in a word for an expansion, with the name of the variable where it is a plain one.
SOMETHING, ARGUMENTS = "\0", "\0@"

# These run the command in their arguments; before it come their options, and so many words more.
RUNNERS = {"exec": 0, "timeout": 1, "srun": 0, "sudo": 0, "flock": 1}

# Programs that are started by another one: git reaches a repository through ssh.
BROUGHT_ALONG = {"git": {"ssh"}}


@dataclass(frozen=True)
class Script:
    """A script, or several that are one after the other in one shell: its functions, and what stands outside of them.

    `looked_for` are the commands that are asked for with `command -v`, be it in a loop over their names; `seekers` are
    the functions that so ask for their arguments; `constants` are the variables that are read only.
    """

    functions: Mapping[str, tuple[Call, ...]]
    top: tuple[Call, ...]
    looked_for: frozenset[str]
    seekers: frozenset[str]
    constants: Mapping[str, str]

    def __add__(self, later: "Script") -> "Script":
        return Script(
            {**self.functions, **later.functions},
            self.top + later.top,
            self.looked_for | later.looked_for,
            self.seekers | later.seekers,
            {**self.constants, **later.constants},
        )

    @property
    def all_calls(self) -> tuple[Call, ...]:
        return (*self.top, *(call for calls in self.functions.values() for call in calls))

    def reached_calls(self) -> tuple[Call, ...]:
        """The calls outside of functions, and those in the functions that can be reached from there."""
        reached = list(self.top)
        seen: set[str] = set()
        for call in reached:
            for name in self.run_by(call):
                if name in self.functions and name not in seen:
                    seen.add(name)
                    reached += self.functions[name]
        return tuple(reached)

    def run_by(self, call: Call) -> Iterator[str]:
        """The commands and functions that one call runs: `ask timeout 30 squeue` runs all three."""
        if call:
            yield call[0]
            if call[0] in RUNNERS:
                yield from self.run_by(command_of(call))
            elif self.hands_on(call[0]):
                yield from self.run_by(call[1:])

    def hands_on(self, function: str) -> bool:
        """Whether this is a function that runs its arguments as a command."""
        calls = self.functions.get(function, ())
        return any((command_of(call) if call[0] in RUNNERS else call)[:1] == (ARGUMENTS,) for call in calls)

    def commands(self, calls: tuple[Call, ...]) -> set[str]:
        """The programs among what these calls run: neither built into bash, nor functions."""
        names = {name for call in calls for name in self.run_by(call)}
        names = {name for name in names if SOMETHING not in name and not name.isdigit()}
        found = names - set(self.functions) - builtins()
        return found.union(*(BROUGHT_ALONG.get(name, set()) for name in found))


EMPTY = Script({}, (), frozenset(), frozenset(), {})


def command_of(call: Call) -> Call:
    """The command that is given to a runner: `timeout -k 5 30 git fetch` gives `git fetch`."""

    def drop_options(words: Call) -> Call:
        while words and (words[0].startswith("-") or words[0].endswith("[@]")):
            words = words[1:]
        return words

    return drop_options(drop_options(call[1:])[RUNNERS[call[0]] :])


@cache
def builtins() -> frozenset[str]:
    done = subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


@cache
def parse(text: str) -> Script:
    """Read a script; it is an error where it is none."""
    shfmt = Path(sys.executable).parent / "shfmt"
    done = subprocess.run([shfmt, "--to-json"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tree = json.loads(done.stdout, object_hook=lambda node: None if "Offset" in node else node)  # without line numbers
    bodies = {node["Name"]["Value"]: node["Body"] for node in find(tree, "FuncDecl")}
    functions = {name: tuple(list_calls(body)) for name, body in bodies.items()}
    top = tuple(list_calls(tree))
    calls = (*top, *(call for calls in functions.values() for call in calls))
    looked_for = {call[2] for call in calls if call[:2] == ("command", "-v")} | set(list_looked_for(tree))
    seekers = frozenset(name for name, body in bodies.items() if ARGUMENTS in list_looked_for(body))
    named = frozenset(name for name in looked_for if SOMETHING not in name)
    return Script(functions, top, named, seekers, dict(list_constants(tree)))


def find(node: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Every node of one kind, those inside of others included."""
    if isinstance(node, list):
        for part in node:
            yield from find(part, kind)
    elif isinstance(node, dict):
        if node.get("Type") == kind:
            yield node
        yield from find(list(node.values()), kind)


def list_calls(node: Any) -> Iterator[Call]:
    """Each call in a part of a script, those in traps too; what is in a function inside of it is left out."""
    if isinstance(node, list):
        for part in node:
            yield from list_calls(part)
    elif isinstance(node, dict) and node.get("Type") != "FuncDecl":
        if node.get("Type") == "CallExpr" and node.get("Args"):
            words = tuple(read_word(word) for word in node["Args"])
            yield words
            if words[0] == "trap" and words[1] not in ("", "-"):
                yield from parse(words[1]).top
        yield from list_calls(list(node.values()))


def list_looked_for(tree: Any) -> Iterator[str]:
    """The words of each loop that asks for them with `command -v`."""
    for loop in find(tree, "ForClause"):
        if any(call[:2] == ("command", "-v") for call in list_calls(loop["Do"])):
            yield from (read_word(word) for word in loop["Loop"].get("Items", []))


def list_constants(tree: Any) -> Iterator[tuple[str, str]]:
    for clause in find(tree, "DeclClause"):
        for item in clause.get("Args", []):
            if clause["Variant"]["Value"] == "readonly" and "Name" in item and "Value" in item:
                yield item["Name"]["Value"], read_word(item["Value"])


def read_word(word: dict[str, Any]) -> str:
    return "".join(read_part(part) for part in word["Parts"])


def read_part(part: dict[str, Any]) -> str:
    match part["Type"]:
        case "Lit" | "SglQuoted":
            return str(part.get("Value", ""))
        case "DblQuoted":
            return "".join(read_part(inner) for inner in part.get("Parts", []))
        case "ParamExp" if not {"Exp", "Slice", "Repl", "Length", "Excl"} & set(part):
            every = part.get("Index", {}).get("Parts", [{}])[0].get("Value") in ("@", "*")
            return SOMETHING + str(part["Param"]["Value"]) + ("[@]" if every else "")
    return SOMETHING
