"""Hostile text in every field of a spec: refused by name, or back from the scripts as it was, and never run.

A hundred specs in every run of the tests. For ten thousand, in a quarter of an hour, with a line that counts them:

    pytest tests/bundle/test_hostile.py --hypothesis-profile=thorough
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings

from slurm_bundle.catalog import load_catalog
from slurm_bundle.lint import find_tool
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.problems import SpecError, show_text
from slurm_bundle.render import BundleFile, render_bundle
from slurm_bundle.spec import ReadSpec, read_spec
from slurm_bundle.surroundings import look_around, require_files
from tests.arrival import Variables, check_arrived, expect_variables
from tests.hostile import FIELDS, Case, cases
from tests.sourcing import Shell, Sourced

CATALOG = load_catalog(None, explicit=False)
BATCH_SCRIPT = "#!/bin/bash\n#SBATCH --nice=1\necho 'it''s' {{ 7 * 7 }} $HOME\r\techo '\u2028'\n\n"
# What a text may be refused for that its own field could hold.
ELSEWHERE = ("the container has to see the folder", "Slurm replaces in the path of a log", "makes a file name of more")
NOT_THE_SPECS = ("SHA256SUMS", "MANIFEST.json", "README.md", "config.sh")


@dataclass
class Tally:
    """What became of the specs and of their values."""

    taken: int = 0
    refused: int = 0
    values_taken: Counter[str] = field(default_factory=Counter)
    values_refused: Counter[str] = field(default_factory=Counter)
    sourced: int = 0
    compared: int = 0

    def __str__(self) -> str:
        """What is said when all went well: the first that is executed or mangled fails the test."""
        return (
            f"{self.taken + self.refused} hostile specs: {self.taken} taken as they are, {self.refused} refused by "
            f"field, value and reason, then taken without that; {self.values_taken.total()} values of {len(FIELDS)} "
            f"fields taken, {self.values_refused.total()} refused; {self.sourced} scripts sourced, {self.compared} "
            "variables compared: 0 executed, 0 mangled"
        )


@dataclass
class Made:
    """A bundle, and where it came from."""

    read: ReadSpec
    plan: Plan
    files: dict[str, BundleFile]

    def text(self, path: str) -> str:
        return self.files[path].text


def make(file: Path, spec: Mapping[str, Any]) -> Made:
    """Do what `gen bundle` does, up to the writing."""
    file.write_text(json.dumps(spec))
    read = read_spec(file)
    here = look_around(read)
    plan = resolve_plan(read, CATALOG, here)
    require_files(read, here)
    return Made(read, plan, {file.path: file for file in render_bundle(plan)})


class Bench:
    """What all the specs of one run share: folders, long-lived shells, the linter at work behind, the tally."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tally = Tally()
        self.shells = [Shell()]
        if "GEN_TEST_BASH" in os.environ:
            self.shells.append(Shell(os.environ["GEN_TEST_BASH"]))
        self.linters = ThreadPoolExecutor(1)
        self.lints: list[Future[str]] = []
        self.batch: list[Path] = []
        self.number = 0

    def place(self) -> Path:
        self.number += 1
        place = self.folder / str(self.number)
        place.mkdir()
        return place

    def lint(self, place: Path) -> None:
        """Have shellcheck look at the scripts of this place, many places in one call."""
        self.batch.append(place)
        if len(self.batch) == 50:
            self.lint_batch()

    def lint_batch(self) -> None:
        self.lints.append(self.linters.submit(run_shellcheck, self.batch))
        self.batch = []
        if len(self.lints) > 3:  # the linter lags behind
            self.lints[-3].result()

    def finish_lint(self) -> str:
        """Give what shellcheck found in all of them."""
        self.lint_batch()
        return "".join(lint.result() for lint in self.lints)

    def close(self) -> None:
        self.linters.shutdown()
        for shell in self.shells:
            shell.close()


def run_shellcheck(places: list[Path]) -> str:
    if not places:
        return ""
    scripts = [str(path) for place in places for path in sorted(place.iterdir()) if path.suffix in (".sh", ".slurm")]
    program = find_tool("shellcheck")
    assert program
    done = subprocess.run([program, "-S", "style", *scripts], capture_output=True, text=True, check=False)
    for place in places:
        shutil.rmtree(place)
    return done.stdout + done.stderr


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("HOME", str(tmp_path))
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.mark.req("R1", "R6", "R59")
def test_hostile_text_is_refused_by_name_or_comes_back_as_it_was_and_never_runs(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    @settings(deadline=None)
    @given(cases())
    def try_one(case: Case) -> None:
        check_case(bench, case)

    try_one()
    assert bench.finish_lint() == ""
    with capsys.disabled():
        print(f"\n{bench.tally}")
    if bench.tally.taken + bench.tally.refused >= 5000:
        assert {name for name in FIELDS if not bench.tally.values_taken[name]} == set()
        assert {name for name in FIELDS if not bench.tally.values_refused[name]} == set()


def check_case(bench: Bench, case: Case) -> None:
    place = bench.place()
    left = dict(case.values)
    while True:
        (place / "job.sh").write_bytes(BATCH_SCRIPT.encode())
        put_script(place, left.get("script_path"))
        try:
            made = make(place / case.file, case.spec(left))
            break
        except SpecError as error:
            refused = {check_refusal(str(problem), case, left) for problem in error.problems}
            for name in refused:
                bench.tally.values_refused[name] += 1
                del left[name]
    plain = make(place / case.file, case.spec({name: plain_value(name, made) for name in left}))
    clear(place)
    check_texts(made, plain, left)
    check_sourced(bench, place, made, left)
    bench.tally.values_taken.update(left.keys())
    bench.tally.taken += left.keys() == case.values.keys()
    bench.tally.refused += left.keys() != case.values.keys()
    bench.lint(place)


def put_script(place: Path, name: Any) -> None:
    """Put the user's batch script where the spec says that it is, if there can be such a file."""
    if isinstance(name, str) and name and "/" not in name:
        with suppress(OSError, ValueError):
            (place / name).write_bytes(BATCH_SCRIPT.encode())


def clear(place: Path) -> None:
    for path in place.iterdir():
        path.unlink()


def check_refusal(problem: str, case: Case, left: Mapping[str, Any]) -> str:
    """A refusal names the field, shows its value, and gives a reason; what fits its field is never refused."""
    file = re.escape(show_text(case.file))
    told = re.sub(rf"^{file}(:[0-9]+)?: ", "", problem)
    name = next((name for name in left if re.match(rf"{re.escape(name)}[:.\[]", told)), None)
    assert name, f"{problem!r} names none of {left!r}"
    assert name not in case.fitting or any(reason in told for reason in ELSEWHERE), f"{problem} fits: {left[name]!r}"
    assert FIELDS[name].group == "env" or shows(told, left[name]), f"{problem!r} does not show {left[name]!r}"
    assert "; " in told or " ... " in told, f"{problem!r} shows no way out"
    return name


def shows(told: str, value: Any) -> bool:
    """Whether a message has the beginning of the value, as Python or as JSON writes it; a secret it must not show."""
    if isinstance(value, list):
        return any(shows(told, part) for part in value)
    forms = (repr(value)[1:-1], show_text(json.dumps(value, ensure_ascii=False))[1:-1])
    return any(form[:12] in told for form in forms) or "(not shown)" in told


def plain_value(name: str, made: Made) -> Any:
    """A harmless value that gives the same features and the same lines."""
    if FIELDS[name].group == "env":
        return {variable: "x" for variable, _ in made.plan.holes["environment"]}
    if name == "sbatch_options":
        return [re.sub("=.*", "=7", option) for option in made.plan["sbatch_options"]]
    return FIELDS[name].plain


def check_texts(made: Made, plain: Made, values: Mapping[str, Any]) -> None:
    """For the same features the scripts are the same bytes; elsewhere, there is nothing but values in their places."""
    script = f"recipes/{made.plan['script_name']}"
    same_names = {path.replace(script, "recipes/job.sh") for path in made.files}
    assert same_names == {
        path.replace(f"recipes/{plain.plan['script_name']}", "recipes/job.sh") for path in plain.files
    }
    for path, file in made.files.items():
        assert file.text.endswith("\n"), path
        if path == script:
            assert file.text == BATCH_SCRIPT
        elif path in ("config.sh", "recipes/job.slurm", "build.slurm"):
            assert bones(file.text) == bones(plain.text(path)), path
        elif path in ("command.sh", "build_command.sh", "login/init.sh"):
            assert file.text == own_text(path, plain, values), path
        elif path not in NOT_THE_SPECS:
            assert file.text == plain.text(path), path
    check_readme(made.text("README.md"), plain.text("README.md"))
    listed = [entry["path"] for entry in json.loads(made.text("MANIFEST.json"))["files"]]
    assert sorted([*listed, "MANIFEST.json", "SHA256SUMS"]) == sorted(made.files)
    assert len(made.text("SHA256SUMS").split("\n")) == len(made.files)


def split_script(text: str) -> tuple[str, str]:
    """A script's header and values, and what stands below them."""
    head, mark, body = re.split(r"(\n# (?:resolve FOLDER|The exit file)|\Z)", text, maxsplit=1)
    return head, mark + body


def bones(text: str) -> str:
    """A script without its values and comments; of what assigns them, the names."""
    head, body = split_script(text)
    head = re.sub(r"^(#SBATCH --[a-z-]+|export \w+|(?:readonly )?[A-Z]\w*)=.*", r"\1", head, flags=re.MULTILINE)
    head = re.sub(r"^(?:# Note: .*\n)+#\n", "", head, flags=re.MULTILINE)
    return re.sub(r"^# .*", "#", head, flags=re.MULTILINE) + body


def own_text(path: str, plain: Made, values: Mapping[str, Any]) -> str:
    """The file that holds the user's own text, as it has to be."""
    text = plain.text(path)
    for name, value in values.items():
        if FIELDS[name].arrives == f"text {path}":
            assert text.count(FIELDS[name].plain) == 1
            return text.replace(FIELDS[name].plain, value.rstrip("\n"))
        if name == "custom_script" and path == "command.sh":
            return text.replace("/run.sh", "/" + shlex.quote(PurePosixPath(value).name))
    return text


def check_readme(text: str, plain: str) -> None:
    """It has the same lines, none of which a value has made into something else."""
    assert text.splitlines() == text.split("\n")[:-1]
    notes = re.compile(r"^## Notes on the spec\n\n(?:- .*\n)+\n", re.MULTILINE)
    lines, others = (notes.sub("", each).split("\n") for each in (text, plain))
    assert len(lines) == len(others)
    for line, other in zip(lines, others, strict=True):
        assert line[:2] == other[:2]
        assert not any(unicodedata.category(char) in ("Cc", "Cf") for char in line), line
        if other.startswith("| "):
            assert [mark for mark in re.findall(r"\\.|(\|)", line) if mark] == ["|"] * 4, line


def check_sourced(bench: Bench, place: Path, made: Made, values: Mapping[str, Any]) -> None:
    """Source what holds values, and compare each with the plan, and with the spec."""
    came: dict[str, Variables] = {}
    options = {"recipes/job.slurm": "job_options", "build.slurm": "build_options"}
    for path in ("config.sh", *options):
        if path not in made.files or made.files[path].side == "user":
            continue
        name = PurePosixPath(path).name
        head, _ = split_script(made.text(path))
        variables = expect_variables(made.plan, path)
        if variables:  # else there is nothing that shellcheck has not seen
            (place / name).write_text(made.text(path))
        (place / f"{name}.head").write_text(f"{head}\n")
        for shell in bench.shells if path == "config.sh" else bench.shells[:1]:
            sourced = shell.source(place, f"{name}.head", list(variables))
            check_one(path, sourced, variables)
            bench.tally.sourced += 1
            bench.tally.compared += len(variables)
        came[path] = sourced.values
        if path in options:
            lines = re.findall(r"^#SBATCH (.*)$", head, re.MULTILINE)
            wanted = made.plan.holes[options[path]]
            assert [shlex.split(line, comments=True) for line in lines] == [[option] for option in wanted]
    there = {path.name.removesuffix(".head") for path in place.iterdir()}
    assert there == {"said", *(PurePosixPath(path).name for path in came)}, f"something was run: {there}"
    for name, value in values.items():
        check_arrived(name, value, made.plan, made.read.folder, came)


def check_one(path: str, sourced: Sourced, variables: Variables) -> None:
    assert sourced.said == "", f"{path} said {sourced.said!r}"
    assert sourced.ended == "0"
    assert sourced.values == variables, f"{path} is mangled"
    made_besides = sourced.new - variables.keys() - {"image", "user_root", "scripts", "repo", "base"}
    assert made_besides == set(), f"{path} makes {made_besides}"
