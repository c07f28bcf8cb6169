"""Turns the file job_spec.json into a Spec with the line of each field, or into all that is wrong with it."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

# Gives line and column of every key and value, which json does not keep. The list behind its `calculate` is used,
# since a key that is given twice is in the list twice, and in the mapping that `calculate` makes of it once.
from json_source_map import handle, types
from pydantic import ValidationError

from slurm_bundle.explaining import find_problems
from slurm_bundle.fields import ALIASES, COMMANDS, Spec
from slurm_bundle.image import image_remarks
from slurm_bundle.mounts import mount_remarks, parse_mount
from slurm_bundle.problems import Problem, SpecError, describe_value, place_of, show_text, show_value
from slurm_bundle.secrecy import find_secret
from slurm_bundle.walltime import explain_walltime, parse_duration

DROPPED = "slurm_password"
IGNORED = "$schema"


@dataclass(frozen=True)
class ReadSpec:
    """A spec and where it was read.

    `name` is the file's name as messages show it, `folder` the file's folder (relative local paths start there),
    `lines` maps fields (`node_count`, `slurm_params.nodes`, `mounts[1]`) to their lines, `warnings` are remarks that
    stop nothing.
    """

    spec: Spec
    name: str
    folder: Path
    lines: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    def place(self, name: str) -> str:
        """Give the place of a field as messages show it."""
        return place_of(self.name, name, self.lines)


class BadNumber(float):
    """NaN or Infinity, which json reads and JSON does not have."""


def read_spec(path: Path, *, overrides: Mapping[str, object] | None = None) -> ReadSpec:
    """Read a spec strictly; `overrides` replace top-level fields, as `--set` does.

    Raises SpecError with every problem that was found, in the order of the file.
    """
    name = show_text(path.name)
    text = read_text(path)
    values, lines, problems = parse_json(text, name)
    for key, value in (overrides or {}).items():
        values[key] = value
        lines = {place: line for place, line in lines.items() if re.split(r"[.\[]", place)[0] != key}
    return check_values(values, name=name, folder=path.parent.absolute(), lines=lines, problems=problems)


def check_values(
    values: Mapping[str, object],
    *,
    name: str = "job_spec.json",
    folder: Path = Path(),
    lines: Mapping[str, int] | None = None,
    problems: tuple[Problem, ...] = (),
) -> ReadSpec:
    """Make a spec of values that are already parsed; `problems` are those found before.

    Raises SpecError with every problem.
    """
    known = MappingProxyType(dict(lines or {}))
    kept, warnings = drop_passwords(values, name, known)
    found = [*problems, *check_texts(kept, name, known)]
    bad_fields = {top_field(problem, name) for problem in found}
    spec, wrong, model_problems = build_spec(without_halves(kept), name, known)
    found += [problem for problem in model_problems if problem.place not in {earlier.place for earlier in found}]
    found += [
        Problem(place_of(name, where, known), message)
        for where, message in check_together(spec, wrong)
        if where not in bad_fields
    ]
    if found:
        raise SpecError(sorted(found, key=lambda problem: line_of(problem, name)))
    warnings += [Problem(place_of(name, where, known), message) for where, message in remark_spec(spec)]
    return ReadSpec(spec, name, folder, known, tuple(sorted(warnings, key=lambda problem: line_of(problem, name))))


def read_text(path: Path) -> str:
    """Read the file as UTF-8; a byte order mark is passed over."""
    name = show_text(path.name)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SpecError([Problem(name, f"there is no file {show_text(str(path))}; check the path")]) from None
    except IsADirectoryError:
        raise SpecError([Problem(name, f"{show_text(str(path))} is a folder; give the file in it")]) from None
    except OSError as error:
        raise SpecError([Problem(name, f"cannot be read ({error.strerror}); check its permissions")]) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        said = f"byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8"
        raise SpecError([Problem(f"{name}:{line}", said)]) from None


def parse_json(text: str, name: str) -> tuple[dict[str, Any], dict[str, int], tuple[Problem, ...]]:
    """Give the values, the line of each field, and the problems that json itself passes over."""
    if not text.strip():
        raise SpecError([Problem(name, "the file is empty; write an object such as {}")])
    repeated: set[str] = set()

    def keep_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        repeated.update(key for key in keys if keys.count(key) > 1)
        return dict(pairs)

    try:
        values = json.loads(text, object_pairs_hook=keep_pairs, parse_constant=BadNumber, parse_int=read_integer)
        entries = handle.value(source=text, current_location=types.Location(0, 0, 0))
    except json.JSONDecodeError as error:
        place = f"{name}:{error.lineno}:{error.colno}"
        raise SpecError([Problem(place, explain_syntax(error))]) from None
    except RecursionError:
        raise SpecError([Problem(name, "brackets are nested too deeply; a spec has three levels at most")]) from None
    if not isinstance(values, dict):
        message = f'expected an object at the top, got {describe_value(values)}; write {{"account": "..."}}'
        raise SpecError([Problem(f"{name}:1", message)])
    lines: dict[str, int] = {}
    told: set[str] = set()
    problems = []
    for pointer, entry in entries:
        place = place_in_spec(pointer)
        line = (entry.key_start or entry.value_start).line + 1
        key = pointer.rpartition("/")[2]
        if entry.key_start and place in lines and key in repeated:
            message = f"given twice, in line {lines[place]} and in line {line}; keep one"
            problems.append(Problem(place_of(name, place, {place: line}), message))
            told.add(key)
        lines.setdefault(place, line)
    problems += [
        Problem(name, f"the key {show_value(key)} is given twice; keep one") for key in sorted(repeated - told)
    ]
    lines.pop("", None)
    return values, lines, tuple(problems)


def place_in_spec(pointer: str) -> str:
    """Give `slurm_env.partitions[1].name` for `/slurm_env/partitions/1/name`."""
    return re.sub(r"/([0-9]+)(?=/|$)", r"[\1]", pointer).replace("/", ".").removeprefix(".")


def read_integer(digits: str) -> int | BadNumber:
    """Read an integer; Python refuses to convert thousands of digits, and no field is that large."""
    return int(digits) if len(digits) <= 18 else BadNumber("inf")


def explain_syntax(error: json.JSONDecodeError) -> str:
    """Say in our words what json did not understand, and how to mend it."""
    before, after = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    word = re.match(r"[A-Za-z]+", after)
    meant = {"True": "true", "False": "false", "None": "null"}.get(word[0]) if word else None
    if meant and word:
        return f"{word[0]} is no JSON; write {meant}"
    if after.startswith(("//", "#", "/*")):
        return "JSON has no comments; take it out"
    if after.startswith("'"):
        return "JSON has no single quotes; write double quotes"
    if error.msg.startswith("Illegal trailing comma") or (before.endswith(",") and after[:1] in ("}", "]")):
        return "a comma before the closing bracket; take the comma out"
    if error.msg.startswith("Expecting ',' delimiter") and after:
        return "a comma is missing before this; put one between the two"
    if error.msg.startswith("Expecting property name"):
        return (
            'expected a key in double quotes; write "name": value'
            if after
            else "the file ends too early; close it with }"
        )
    if error.msg.startswith("Invalid control character"):
        return "a line break or tab inside a string; write \\n or \\t"
    if error.msg.startswith("Invalid \\escape"):
        return "an unknown \\ escape; write \\\\ for a backslash"
    if error.msg.startswith("Unterminated string"):
        return "the string is not closed; put a double quote at its end"
    if error.msg.startswith("Extra data"):
        return "text after the end of the object; take it out"
    if error.msg.startswith("Expecting ':'"):
        return 'a colon is missing after the key; write "name": value'
    if not after:
        return "the file ends too early; close every bracket and quote"
    return f"not JSON here ({error.msg.lower()}); write a string in double quotes, a number, true, false or null"


def drop_passwords(
    values: Mapping[str, object], name: str, lines: Mapping[str, int]
) -> tuple[dict[str, Any], list[Problem]]:
    """Leave out every password, with a warning, and the key that is for editors."""
    kept: dict[str, Any] = {key: value for key, value in values.items() if key not in (IGNORED, DROPPED)}
    places = [DROPPED] if values.get(DROPPED) else []
    for key in ("slurm_env", "slurm_params"):
        inner = kept.get(key)
        if isinstance(inner, dict) and DROPPED in inner:
            kept[key] = {inner_key: value for inner_key, value in inner.items() if inner_key != DROPPED}
            places.append(f"{key}.{DROPPED}")
    message = "dropped: gen never stores a password; take it out of the file and log in with a key"
    return kept, [Problem(place_of(name, place, lines), message) for place in places]


def check_texts(values: Mapping[str, object], name: str, lines: Mapping[str, int]) -> list[Problem]:
    """Check every text and number wherever it stands: no NUL, nothing that UTF-8 cannot hold, no secret, no NaN."""
    return [
        Problem(place_of(name, place, lines), message)
        for place, value in walk(values)
        for message in [wrong_anywhere(place, value)]
        if message
    ]


def walk(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Give every key and every value inside a value, with its place."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            where = f"{place}.{key}" if place else str(key)
            yield where, key
            yield from walk(inner, where)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from walk(inner, f"{place}[{index}]")
    else:
        yield place, value


def wrong_anywhere(place: str, value: object) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN, Infinity and numbers beyond all measure are not allowed; write a number or null"
    if not isinstance(value, str):
        return None
    # The variables have a stricter check of their own.
    secret = None if of_variables(place) else find_secret(value)
    if secret:
        return secret
    shown = "it" if of_variables(place) else show_value(value)
    if "\0" in value:
        return f"{shown} has a NUL character (\\u0000), which no shell can carry; take it out"
    if any("\ud800" <= char <= "\udfff" for char in value):
        said = "has half of a surrogate pair (\\ud800 to \\udfff), which is no character"
        return f"{shown} {said}; write the character itself"
    return None


def of_variables(place: str) -> bool:
    return re.match(r"(custom_)?env\b", place) is not None


def without_halves(value: Any) -> Any:
    """Put a sign in place of each half of a surrogate pair, told of already: the model cannot even complain of one."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {without_halves(key): without_halves(inner) for key, inner in value.items()}
    return list(map(without_halves, value)) if isinstance(value, list) else value


def build_spec(
    values: dict[str, Any], name: str, lines: Mapping[str, int]
) -> tuple[Spec, frozenset[str], list[Problem]]:
    """Give the spec of those fields that are right, the names of the others, and their problems."""
    try:
        return Spec.model_validate(values), frozenset(), []
    except ValidationError as error:
        problems = list(find_problems(error, Spec, name=name, lines=lines))
        wrong = frozenset(str(detail["loc"][0]) for detail in error.errors(include_url=False))
        return Spec.model_validate({key: value for key, value in values.items() if key not in wrong}), wrong, problems


def check_together(spec: Spec, wrong: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Find fields that are right alone and wrong together: pairs of a field and a message.

    `wrong` are the fields that are given but not in the spec, since they are wrong alone.
    """
    given = [name for name in COMMANDS if getattr(spec, name) is not None]
    if len(given) > 1:
        yield given[1], f"{' and '.join(given)} are given; keep the one command that is to run"
    for first, second in ALIASES:
        one, other = getattr(spec, first), getattr(spec, second)
        if one is not None and other is not None and comparable(first, one) != comparable(second, other):
            yield second, f"{show(other)} differs from {first} ({show(one)}), which means the same; keep one of the two"
    yield from check_user(spec)
    if spec.mem is not None:
        for index, option in enumerate(spec.sbatch_options or ()):
            if option.startswith(("--mem-per-cpu", "--mem-per-gpu")):
                yield f"sbatch_options[{index}]", f"{option!r} and mem exclude each other; keep one"
    names = {name for name, _ in (*(spec.env or ()), *(spec.custom_env or ()))}
    for index, name in enumerate(spec.pass_env or ()):
        if name in names:
            yield f"pass_env[{index}]", f"{name!r} is in env as well; keep it in one of the two"
    has_image = spec.container_image or spec.docker_image or wrong & {"container_image", "docker_image"}
    if not has_image and spec.container_runtime != "none":
        for field_name in ("mounts", "container_mounts", "container_writable"):
            if getattr(spec, field_name):
                yield field_name, f"{field_name} needs container_image; give an image, or take {field_name} out"


def check_user(spec: Spec) -> Iterator[tuple[str, str]]:
    if spec.slurm_user is None:
        return
    user, at, host = (spec.ssh_host or "").rpartition("@")
    if at and user != spec.slurm_user:
        said = f"{spec.ssh_host!r} logs in as {user!r}, slurm_user is {spec.slurm_user!r}"
        yield "ssh_host", f"{said}; write {host!r}, or give the same user in both"
    words = spec.ssh_options or ()
    for index, word in enumerate(words):
        login = word[2:] or "".join(words[index + 1 : index + 2])
        if word.startswith("-l") and login != spec.slurm_user:
            yield "ssh_options", f"-l {login} and slurm_user {spec.slurm_user} differ; keep one of the two"


def comparable(name: str, value: object) -> object:
    return parse_duration(value) if name == "monitor_timeout" and isinstance(value, str) else value


def show(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(f"{name}={content}" for name, content in value)
    return show_value(value)


def remark_spec(spec: Spec) -> Iterator[tuple[str, str]]:
    """Give what is allowed and often not meant."""
    limits = [(name, getattr(spec, name)) for name in ("time_limit", "alloc_time_limit", "build_time_limit")]
    if spec.slurm_params:
        limits.append(("slurm_params.time_limit", spec.slurm_params.time_limit))
    for name, limit in limits:
        remark = explain_walltime(limit) if limit is not None else None
        if remark:
            yield name, remark
    # Of two names for one thing, the first that is given stands for both.
    image = "container_image" if spec.container_image else "docker_image"
    for remark in image_remarks(getattr(spec, image) or "/"):
        yield image, remark
    name = "mounts" if spec.mounts else "container_mounts"
    mounts = getattr(spec, name) or ()
    if mounts and spec.container_runtime == "none":
        yield name, "without an effect, since container_runtime is none"
    for index, mount in enumerate(mounts):
        for remark in mount_remarks(parse_mount(mount)):
            yield f"{name}[{index}]", remark


def top_field(problem: Problem, name: str) -> str:
    return re.split(r"[.\[]", problem.place.removeprefix(name).partition(": ")[2])[0]


def line_of(problem: Problem, name: str) -> int:
    found = re.match(r":([0-9]+)", problem.place.removeprefix(name))
    return int(found[1]) if found else 0
