"""Turns the fields of a job spec into hostile specs: every free text, what is tried in it, and where it has to arrive.

The fields come from the model itself, so a new one that has no row in FIELDS fails a test.
"""

import shlex
import types
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel

from slurm_bundle.fields import Spec

# Each one that is taken for code makes the file PWNED in the folder where it runs, or says PWNED.
RUN = "touch PWNED"
TRICKS = (
    *(f"$({RUN})", f"`{RUN}`", f"'; {RUN}; '", f'"; {RUN}; "'),
    *(f"; {RUN} #", f"| {RUN} &", f"&& {RUN} ||", f"<({RUN})"),
    *(">PWNED", f"\n{RUN}\n", f"\r{RUN}\r", f"\\\n{RUN}"),
    *(f"\x0b{RUN}", f"\u2028{RUN}\u2029", f"\x85{RUN}", f") {RUN} ("),
    *(f"'\\''; {RUN}; '\\''", f"\\'; {RUN}; #", f"$'\\'; {RUN}; #'", f"$'\\x27; {RUN}; \\x27'", f'$"$({RUN})"'),
    *(f"${{x:-$({RUN})}}", f"a[$({RUN})]", f"$[$({RUN})]", f"$(({RUN}))", f"() {{ :; }}; {RUN}", f"\nEOF\n{RUN}\n"),
    *(f"\n}}\n{RUN}\n", f"\nfi\n{RUN}\n", f"\n;;\n{RUN}\n"),
    *(f"\n#SBATCH --wrap='{RUN}'\n", f"\n    {RUN}\n", f"\n```\n{RUN}"),
    *("{{ 7 * 7 }}", "{% raw %}", "{% if x %}", "{#", "#}", "{##"),
    *("##}", "{{", "}}", "${#x[@]}", "%s%n%d", "%j%x%%", "%"),
    *("$HOME", "${HOME}", "$USER", "$$", "$?", "~", "~root", "/~/"),
    *("!!", "!x", "!", "#", "#!/bin/sh", "\\", "\\\\", "\\n"),
    *("'", '"', "`", "''", '""', "*", "?", "[a-z]", "{a,b}", "^"),
    *("&", "&amp;", "|", ";", ":", ",", "=", "+", "@", "<!--"),
    *("-n", "-rf", "--", "--help", "-oProxyCommand=id", " ", "  "),
    *("\t", " lead", "trail ", ".", "..", "../..", "/", "//"),
    *("\x00", "\x01", "\x07", "\x1b]0;PWNED\x07", "\x1b[2J", "\x7f"),
    *("\x80", "\ud800", "\udfff", "\ufffe", "\u00a0", "\ufeff"),
    *("é", "e\u0301", "日本語", "\u3000", "\u202ereversed"),
    *("\u200b", "🙂", "👩\u200d👩\u200d👧", "\U0001fae8", "a\u200cb"),
    *("EOF", "<<EOF", "@@gen end=0", "None", "null", "true"),
    *("0", "PWNED", "a b", "it's", 'say "hi"', '{"lr": 1e-3}'),
)  # fmt: skip
PARTS = st.one_of(st.sampled_from(TRICKS), st.text("'\"\\$`!#%~ \n\tax/.", max_size=6), st.text(max_size=4))
SHORT = st.lists(PARTS, min_size=1, max_size=4).map("".join)
LONG = SHORT.map(lambda text: ((text or "'") * 4096)[:4096])
# An empty text is a field that is not given.
TEXTS = st.one_of(SHORT, SHORT, SHORT, LONG).filter(bool)


def is_text(char: str) -> bool:
    """What UTF-8 and the variables of a shell can hold."""
    return char != "\0" and unicodedata.category(char) != "Cs"


def is_line(char: str) -> bool:
    """What a text on one line can hold: no control characters, nothing unseen but what joins letters."""
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or char in "\u200c\u200d"


def none_of(characters: str) -> Callable[[str], bool]:
    return lambda char: is_line(char) and char not in characters and not ("\\s" in characters and char.isspace())


def is_directive(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "_.,:+@%/=*&|()[] -")


def fitting(fits: Callable[[str], bool], *, start: str = "", end: str = "", most: int = 200) -> st.SearchStrategy[str]:
    """Tricks that have lost every character that the place cannot hold: each of these has to be taken."""

    def fit(text: str) -> str:
        return start + "".join(filter(fits, text)).encode()[:most].decode(errors="ignore") + end

    return TEXTS.map(fit)


def some(items: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(items, min_size=1, max_size=4)


TEXT = fitting(is_text, start="x", most=5000)
LINE = fitting(is_line, start="x", most=5000)
DIRECTIVE = fitting(is_directive, start="x", end="x", most=900)
WORD = fitting(none_of("\\s\"'`$;#&|<>(){}*?!~^/:@"), start="x")
NAME = fitting(none_of("/$"), start="x")
FILE_NAME = fitting(lambda char: is_text(char) and char != "/", start="x")
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)
CLUSTER_PATH = st.builds("{}{}".format, st.sampled_from(["/", "~/", "//", "/x/./"]), PATH)
MOUNTABLE = fitting(none_of(',:"`$/'), start="x", end="x")
MOUNT = st.builds(
    "{}{}:/{}{}".format, st.sampled_from(["/", "~/", "./"]), MOUNTABLE, MOUNTABLE, st.sampled_from(["", ":ro"])
)
LOCAL_PATH = st.builds("{}{}".format, st.sampled_from(["", "/", "./", "../", "~/"]), PATH)
SAFE = fitting(lambda char: char.isascii() and (char.isalnum() or char in "._-"), start="x", end="x", most=150)
VARIABLE = st.from_regex(r"\AE_[A-Za-z0-9_]{0,12}\Z")
WALLTIME = st.sampled_from(["2h", "90m", "1-12", "02:00:00", "UNLIMITED"])


@st.composite
def environments(draw: st.DrawFn) -> Any:
    """An environment, in one of the forms that a spec may have."""
    pairs = draw(st.dictionaries(VARIABLE, fitting(is_text, most=5000), min_size=1, max_size=4))
    words = [f"{name}={value}" for name, value in pairs.items()]
    return draw(st.sampled_from([pairs, words, " ".join(map(shlex.quote, words))]))


@dataclass(frozen=True)
class Row:
    """A free text of a spec.

    `fits` are hostile values that have to be taken as they are; everything else may be refused. `plain` is a harmless
    one. `arrives` says where the value has to come back: `config NAME`, `job NAME` or `home NAME` (with ~ expanded) of
    the job script, `option --name` of its header, `text FILE` for the user's own text; empty where gen makes another
    value of it, or none. At most one row of a `group` is given in one spec. `where` names the bundles that have it.
    """

    fits: st.SearchStrategy[Any]
    plain: Any
    arrives: str = ""
    group: str = ""
    where: str = ""


FIELDS: dict[str, Row] = {
    # Where it runs
    "ssh_host": Row(WORD, "login", "config SSH_HOST", "login"),
    "ssh_options": Row(
        some(fitting(none_of("$"), start="./x")).map(lambda texts: [word for text in texts for word in ("-i", text)]),
        ["-p", "22"],
        "config SSH_OPTIONS",
    ),
    "slurm_user": Row(WORD, "me"),
    "slurm_cluster": Row(LINE, "aurora", "", "cluster"),
    "cluster_name": Row(LINE, "aurora", "", "cluster"),
    "remote_init": Row(LINE, "echo plain", "text login/init.sh"),
    "remote_cwd": Row(CLUSTER_PATH, "/runs", "config REMOTE_CWD", "cwd"),
    "default_user_root_dir": Row(CLUSTER_PATH, "/root", "config USER_ROOT", "root"),
    "default_models_repo": Row(CLUSTER_PATH, "/models"),
    # What it asks Slurm for
    "account": Row(DIRECTIVE, "acct", "option --account", "account"),
    "partition": Row(DIRECTIVE, "main", "option --partition", "partition"),
    "job_name": Row(
        fitting(lambda c: is_directive(c) and c != "/", start="x", end="x", most=150), "job", "option --job-name"
    ),
    "device_type": Row(LINE, "B200"),
    "time_limit": Row(WALLTIME, "2h", "", "limit"),
    "mem": Row(st.sampled_from(["64G", "0", "1t"]), "64G", "option --mem"),
    "qos": Row(DIRECTIVE, "high", "option --qos"),
    "reservation": Row(DIRECTIVE, "ours", "option --reservation"),
    "constraint": Row(DIRECTIVE, "fast", "option --constraint"),
    "network": Row(DIRECTIVE, "sharp", "option --network"),
    "comment": Row(DIRECTIVE, "hello", "option --comment"),
    "gpu_clocks": Row(st.just("2619,1980"), "2619,1980", "job GPU_CLOCKS", where="job"),
    "sbatch_options": Row(some(DIRECTIVE.map("--licenses={}".format)), ["--nice=7"], "options"),
    "slurm_params.partition": Row(DIRECTIVE, "main", "option --partition", "partition"),
    "slurm_params.account": Row(DIRECTIVE, "acct", "option --account", "account"),
    "slurm_params.time_limit": Row(WALLTIME, "2h", "", "limit"),
    "slurm_params.gres": Row(DIRECTIVE, "gpu:1", "option --gres"),
    "slurm_params.mpi_plugin": Row(st.from_regex(r"\A[A-Za-z0-9_]{1,20}\Z"), "pmix", "job MPI", "", "mpi"),
    "slurm_env.user": Row(TEXT, "me"),
    "slurm_env.default_account": Row(DIRECTIVE, "acct", "option --account", "account"),
    "slurm_env.accounts": Row(some(LINE), ["acct"]),
    "slurm_env.default_partition": Row(DIRECTIVE, "main", "option --partition", "partition"),
    "slurm_env.partitions[0].name": Row(TEXT, "main", "", "found"),
    "slurm_env.partitions[0].state": Row(TEXT, "up", "", "found"),
    "slurm_env.partitions[0].time_limit": Row(TEXT, "infinite", "", "found"),
    "slurm_env.partitions[0].nodes": Row(TEXT, "64", "", "found"),
    "slurm_env.partitions[0].arch": Row(TEXT, "x86_64", "", "found"),
    "slurm_env.partitions[0].gres": Row(TEXT, "gpu:8", "", "found"),
    "slurm_env.pmix.available": Row(some(LINE), ["pmix"], "", "pmix"),
    "slurm_env.pmix.preferred": Row(st.just("pmix_v5"), "pmix", "", "pmix"),
    "slurm_env.errors": Row(some(LINE), ["none"]),
    "slurm_env.ssh_host": Row(WORD, "login", "config SSH_HOST", "login"),
    "slurm_env.slurm_user": Row(WORD, "me"),
    "slurm_env.slurm_cluster": Row(LINE, "aurora"),
    "slurm_env.cluster_name": Row(LINE, "aurora"),
    "slurm_env.remote_cwd": Row(CLUSTER_PATH, "/runs", "config REMOTE_CWD", "cwd"),
    "slurm_env.default_user_root_dir": Row(CLUSTER_PATH, "/root", "config USER_ROOT", "root"),
    "slurm_env.default_models_repo": Row(CLUSTER_PATH, "/models"),
    "slurm_env.account": Row(DIRECTIVE, "acct"),
    "slurm_env.partition": Row(DIRECTIVE, "main"),
    "slurm_env.device_type": Row(LINE, "B200"),
    "slurm_env.mounts": Row(some(MOUNT), ["/a:/a"], "mounts", "mounts", "container"),
    "slurm_env.container_mounts": Row(some(MOUNT), ["/a:/a"]),
    # What runs
    "command": Row(TEXT, "echo plain", "text command.sh", "command", "job"),
    "test_cmd": Row(TEXT, "echo plain", "text command.sh", "command", "job"),
    "bench_cmd": Row(TEXT, "echo plain", "text command.sh", "command", "job"),
    "eval_cmd": Row(TEXT, "echo plain", "text command.sh", "command", "job"),
    "custom_cmd": Row(TEXT, "echo plain", "text command.sh", "command", "job"),
    "custom_script": Row(LOCAL_PATH, "run.sh", "custom_script", "command", "job"),
    "env": Row(environments(), {}, "environment", "env"),
    "custom_env": Row(environments(), {}, "environment", "env"),
    "pass_env": Row(st.lists(st.from_regex(r"\AP_[A-Z]{0,9}\Z"), min_size=1, unique=True), ["P_A"], "config PASS_ENV"),
    "script_path": Row(NAME, "job.sh", "", "script", "batch"),
    "script_name": Row(NAME, "job.sh", "config BATCH_SCRIPT", "script", "batch"),
    "extra_files": Row(some(LOCAL_PATH), ["a.txt"], "extra_files"),
    "model_name": Row(LINE, "llama"),
    # The container
    "container_image": Row(
        fitting(lambda c: c.isprintable() and not c.isspace() and c not in "\"'`$\\;&|<>(){}*?!,", start="/x", end="y"),
        "/images/a.sqsh",
        "home CONTAINER_IMAGE",
        "image",
        "container",
    ),
    "docker_image": Row(SAFE.map("~/{}".format), "/images/a.sqsh", "home CONTAINER_IMAGE", "image", "container"),
    "container_name": Row(SAFE, "name"),
    "mounts": Row(some(MOUNT), ["/a:/a"], "mounts", "mounts", "container"),
    "container_mounts": Row(some(MOUNT), ["/a:/a"], "mounts", "mounts", "container"),
    "packages": Row(some(st.sampled_from(["numpy", "vllm==1.2.3", "a[b]>=1,<2"])), ["numpy"]),
    # The code
    "repo_root": Row(LOCAL_PATH, "engine", "repo_root"),
    "repo_url": Row(WORD.map("https://git.example.org/a/{}.git".format), "https://h/a.git", "config REPO_URL"),
    "repo_branch": Row(LINE, "main"),
    "remote_repo_path": Row(CLUSTER_PATH, "/clone", "home REPO_DIR"),
    "work_dir": Row(LOCAL_PATH, "w", "work_dir", "work"),
    "local_work_dir": Row(LOCAL_PATH, "w", "work_dir", "work"),
    "remote_work_dir": Row(CLUSTER_PATH, "/work", "home WORK_DIR", "work"),
    "refresh_paths": Row(some(fitting(none_of("/$*?[]\\"), start="x")), ["cpp/"], "config REFRESH_PATHS"),
    "build_command": Row(TEXT, "echo plain", "text build_command.sh", "", "build"),
    "build_time_limit": Row(WALLTIME, "2h"),
    # Watching
    "monitor_timeout": Row(st.sampled_from(["1h", "00:30:00"]), "1h"),
    "log_file_pattern": Row(
        fitting(lambda c: is_directive(c) and c not in "/%", start="x%j%x%%", end="x", most=50),
        "a%j.out",
        "config OUT_LOG",
    ),
    "success_patterns": Row(some(LINE), ["passed"], "config SUCCESS_PATTERNS"),
    "failure_patterns": Row(some(LINE), ["FAILED"], "config FAILURE_PATTERNS"),
    "hang_patterns": Row(some(LINE), ["hang"], "config HANG_PATTERNS"),
    "alloc_time_limit": Row(WALLTIME, "2h"),
    # Without an effect
    "execution_scenario": Row(TEXT, "x"),
    "persistent_mode": Row(TEXT, "x"),
    "skip_install": Row(TEXT, "x"),
    "checkpoint_path": Row(TEXT, "x"),
    "llm_models_root": Row(TEXT, "x"),
    "perf_config_yaml": Row(TEXT, "x"),
}


def list_texts(model: type[BaseModel] = Spec, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of the model that takes a free text in some form, with its annotation."""
    for name, info in model.model_fields.items():
        parts = list(flatten(info.annotation))
        inner = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
        if inner:
            index = "[0]" if is_array(info.annotation) else ""
            yield from list_texts(inner[0], f"{prefix}{name}{index}.")
        elif {str, Any} & set(parts):
            yield f"{prefix}{name}", info.annotation


def is_array(annotation: Any) -> bool:
    return any(get_origin(part) is tuple for part in get_args(annotation))


def flatten(annotation: Any) -> Iterator[Any]:
    """The plain types in an annotation; a choice of words is no free text."""
    origin = get_origin(annotation)
    if origin is Literal:
        return
    if origin is Annotated:
        yield from flatten(get_args(annotation)[0])
    elif origin in (Union, types.UnionType, tuple):
        for part in get_args(annotation):
            yield from flatten(part)
    else:
        yield annotation


def raw_value(name: str, annotation: Any) -> st.SearchStrategy[Any]:
    """Any hostile text, in the JSON form of the field: a text, an array of texts, an object."""
    if FIELDS[name].group == "env":
        return st.one_of(st.dictionaries(st.one_of(VARIABLE, TEXTS), TEXTS, min_size=1, max_size=3), some(TEXTS), TEXTS)
    if is_array(annotation):
        return some(TEXTS)
    return TEXTS


ANNOTATIONS = dict(list_texts())

# Where a nested field is given, the one of the same meaning above it must not be there, as it would count first.
ABOVE = {"account": "account", "partition": "partition", "login": "ssh_host", "cwd": "remote_cwd", "command": "command"}


@dataclass(frozen=True)
class Case:
    """A spec to try: its file, the recipe and the like, and hostile values by the path of their field."""

    file: str
    recipe: str
    container: bool
    build: bool
    mfa_style: bool | None
    values: Mapping[str, Any]
    fitting: frozenset[str]

    def spec(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The whole spec with these values."""
        spec: dict[str, Any] = {
            "ssh_host": "login", "mfa_style": self.mfa_style, "remote_cwd": "/runs", "account": "acct",
            "partition": "main", "repo_root": ".", "repo_url": "https://git.example.org/a/engine.git",
            "recipe": self.recipe, "node_count": 1 if self.recipe == "single" else 2, "build_project": self.build,
        }  # fmt: skip
        groups = {FIELDS[name].group for name in values}
        if self.recipe != "batch":
            spec["command"] = "true"
        elif "script_path" not in values:
            spec["script_path"] = "job.sh"
        if self.container and "image" not in groups:
            spec["container_image"] = "/images/a.sqsh"
        for group in groups & ABOVE.keys():
            spec.pop(ABOVE[group], None)
        for name, value in values.items():
            put(spec, name, value)
        return spec

    def fits_here(self, name: str) -> bool:
        where = FIELDS[name].where
        return {
            "": True, "job": self.recipe != "batch", "batch": self.recipe == "batch", "mpi": self.recipe == "mpi",
            "container": self.container, "build": self.build,
        }[where]  # fmt: skip


def put(spec: dict[str, Any], name: str, value: Any) -> None:
    """Set `slurm_env.partitions[0].name` and the like."""
    *owners, last = name.split(".")
    for owner in owners:
        spec = spec.setdefault(owner[:-3], [{}])[0] if owner.endswith("[0]") else spec.setdefault(owner, {})
    spec[last] = value


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A few hostile fields, each with a value that fits or with any."""
    shape = Case(
        draw(st.one_of(st.just("job_spec.json"), FILE_NAME)),
        draw(st.sampled_from(["single", "mpi", "distributed", "launcher", "batch"])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([False, True, None])),
        {},
        frozenset(),
    )
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=12, unique=True))
    chosen: dict[str, str] = {}
    for name in filter(shape.fits_here, names):
        chosen.setdefault(FIELDS[name].group or name, name)
    fitting = frozenset(name for name in chosen.values() if draw(st.integers(0, 3)))
    values = {
        name: draw(FIELDS[name].fits if name in fitting else raw_value(name, ANNOTATIONS[name]))
        for name in chosen.values()
    }
    return replace(shape, values=values, fitting=fitting)
