"""Turns one JSON value into the normal form of its kind: a checked text, a tuple of texts, pairs of an environment.

A kind is a type with its check. The model in fields.py and that of the catalog are made of kinds only.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from slurm_bundle import options, texts
from slurm_bundle.problems import FieldProblems, describe_value
from slurm_bundle.secrecy import check_secret

Check = Callable[[str], str]


def checked(check: Check) -> AfterValidator:
    """Check a text where there is one."""
    return AfterValidator(lambda text: None if text is None else check(text))


def number_as_text(value: object) -> object:
    """Take Slurm's bare number of minutes (or nodes) written as a JSON number."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def refuse_no_gpus(value: object) -> object:
    """Refuse 0: whether it means `ask for none` or `do not ask` differs between clusters."""
    if value == 0 and type(value) is int:
        raise ValueError("0 is not allowed; give 1 or more, or null for no GPU request")
    return value


def check_each(items: Sequence[object], check: Check) -> tuple[str, ...]:
    """Check every item, and report all that are wrong with their index."""
    good, wrong = [], []
    for index, item in enumerate(items):
        try:
            if not isinstance(item, str):
                raise ValueError(f"expected a string, got {describe_value(item)}; write a text in quotes")
            good.append(check(item))
        except ValueError as error:
            wrong.append((f"[{index}]", str(error)))
    if wrong:
        raise FieldProblems(wrong)
    return tuple(good)


def read_array(value: object, check: Check) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        raise ValueError(f'expected an array, got {describe_value(value)}; write ["a", "b"]')
    return check_each(value, check)


def read_list(value: object, check: Check) -> tuple[str, ...] | None:
    """Take an array, or a string with commas between the items."""
    if isinstance(value, str):
        return check_each([item.strip() for item in value.split(",")], check) if value else ()
    return read_array(value, check)


def read_environment(value: object) -> tuple[tuple[str, str], ...] | None:
    """Take an object, an array of KEY=VALUE, or a string of KEY=VALUE words quoted as for a shell."""
    if value is None:
        return None
    pairs = list(split_environment(value))
    wrong = []
    for place, name, content in pairs:
        try:
            texts.check_environment_name(name)
            if not isinstance(content, str):
                said = f"expected a string, got {describe_value(content)}"
                raise ValueError(f"{said}; write the value in quotes")
            check_secret(name, content)
        except ValueError as error:
            wrong.append((place, str(error)))
    names = [name for _, name, _ in pairs]
    wrong += [
        (place, f"{name!r} is given twice; keep one")
        for index, (place, name, _) in enumerate(pairs)
        if name in names[:index]
    ]
    if wrong:
        raise FieldProblems(wrong)
    return tuple((name, str(content)) for _, name, content in pairs)


def split_environment(value: object) -> Iterable[tuple[str, str, object]]:
    """Give place, name and value of each variable."""
    if isinstance(value, dict):
        return [(f".{name}", name, content) for name, content in value.items()]
    if isinstance(value, str):
        try:
            words: list[object] = list(shlex.split(value))
        except ValueError as error:
            raise ValueError(
                f"the words cannot be told apart ({error}); quote as for a shell: A=1 B='two words'"
            ) from None
        return [("", *split_pair(word)) for word in words]
    if isinstance(value, (list, tuple)):
        return [(f"[{index}]", *split_pair(item)) for index, item in enumerate(value)]
    raise ValueError(f'expected an object, got {describe_value(value)}; write {{"NAME": "value"}}')


def split_pair(item: object) -> tuple[str, object]:
    # A pair is what this function's own result holds, so that a Spec's values can be read again.
    if isinstance(item, (list, tuple)) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return item[0], item[1]
    if not isinstance(item, str) or "=" not in item:
        # The value may be a secret: it is not shown.
        raise ValueError('expected KEY=VALUE, got a word without "="; write for example NCCL_DEBUG=INFO')
    name, _, content = item.partition("=")
    return name, content


def array_of(check: Check) -> BeforeValidator:
    return BeforeValidator(lambda value: read_array(value, check))


def list_of(check: Check) -> BeforeValidator:
    return BeforeValidator(lambda value: read_list(value, check))


STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
STRING: dict[str, Any] = {"type": "string"}
NULL: dict[str, Any] = {"type": "null"}
OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": STRING}

ARRAY_SCHEMA = WithJsonSchema({"anyOf": [STRINGS, NULL]})
LIST_SCHEMA = WithJsonSchema({"anyOf": [STRINGS, STRING, NULL]})
WALLTIME_SCHEMA = WithJsonSchema({"anyOf": [STRING, {"type": "integer"}, NULL]})

# Texts
Text = Annotated[str | None, AfterValidator(lambda text: text)]
Line = Annotated[str | None, checked(texts.check_line)]
Header = Annotated[str | None, checked(texts.check_header)]
JobName = Annotated[str | None, checked(texts.check_job_name)]
LogPattern = Annotated[str | None, checked(texts.check_log_pattern)]
Memory = Annotated[str | None, checked(texts.check_memory)]
Clocks = Annotated[str | None, checked(texts.check_clocks)]
Word = Annotated[str | None, checked(texts.check_word)]
SshHost = Annotated[str | None, checked(texts.check_ssh_host)]
ClusterPath = Annotated[str | None, checked(texts.check_cluster_path)]
LocalPath = Annotated[str | None, checked(texts.check_local_path)]
NamedPath = Annotated[str | None, checked(texts.check_named_path)]
FileName = Annotated[str | None, checked(texts.check_file_name)]
RepoUrl = Annotated[str | None, checked(texts.check_repo_url)]
Image = Annotated[str | None, checked(texts.check_container_image)]
ContainerName = Annotated[str | None, checked(texts.check_container_name)]
MpiPlugin = Annotated[str | None, checked(texts.check_plugin)]
Duration = Annotated[str | None, BeforeValidator(number_as_text), checked(texts.check_duration)]
Walltime = Annotated[str | None, BeforeValidator(number_as_text), checked(texts.check_walltime), WALLTIME_SCHEMA]
TextOrNumber = Annotated[str | None, BeforeValidator(number_as_text), WALLTIME_SCHEMA]

# Numbers
Count = Annotated[int, Field(ge=1, le=1_000_000)] | None
Gpus = Annotated[int, BeforeValidator(refuse_no_gpus), Field(ge=1, le=1024)] | None

# Several texts
Mounts = Annotated[tuple[str, ...] | None, list_of(texts.check_mount), LIST_SCHEMA]
Patterns = Annotated[tuple[str, ...] | None, list_of(texts.check_pattern), LIST_SCHEMA]
Lines = Annotated[tuple[str, ...] | None, array_of(texts.check_line), ARRAY_SCHEMA]
Packages = Annotated[tuple[str, ...] | None, array_of(texts.check_package), ARRAY_SCHEMA]
LocalPaths = Annotated[tuple[str, ...] | None, array_of(texts.check_local_path), ARRAY_SCHEMA]
RefreshPaths = Annotated[tuple[str, ...] | None, array_of(texts.check_refresh_path), ARRAY_SCHEMA]
Names = Annotated[tuple[str, ...] | None, array_of(texts.check_environment_name), ARRAY_SCHEMA]
SbatchOptions = Annotated[tuple[str, ...] | None, array_of(options.check_sbatch_option), ARRAY_SCHEMA]
SshOptions = Annotated[tuple[str, ...] | None, BeforeValidator(options.read_ssh_options), ARRAY_SCHEMA]
Environment = Annotated[
    tuple[tuple[str, str], ...] | None,
    BeforeValidator(read_environment),
    WithJsonSchema({"anyOf": [OBJECT, STRINGS, STRING, NULL]}),
]
