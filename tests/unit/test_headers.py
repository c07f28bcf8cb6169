"""The #SBATCH lines of every combination of fields: what sbatch reads, and what it must never be given."""

import itertools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.catalog import load_catalog
from slurm_bundle.options import read_directives
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.problems import SpecError
from slurm_bundle.render import render_bundle
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import check_values, read_spec

BASE: dict[str, Any] = {
    "ssh_host": "bigiron",
    "mfa_style": False,
    "remote_cwd": "/home/a/runs",
    "account": "acct",
    "partition": "main",
    "repo_root": "/src/engine",
    "repo_url": "git@git.example.org:a/engine.git",
    "command": "make test",
}

# Each of these adds or takes away something of a header.
OPTIONAL: tuple[dict[str, Any], ...] = (
    {"gpus_per_node": 8},
    {"qos": "high", "reservation": "res 1", "constraint": "[a|b]&c*2", "comment": "team x"},
    {"cpus_per_task": 4, "mem": "0", "exclusive": True},
    {"network": "sharp", "gpu_clocks": "2619,1980"},
    {"sbatch_options": ["--nice=100", "--exclude=n[1-3]"]},
    {"requeue": True},
    {"container_image": "ubuntu:24.04", "container_writable": True},
    {"recipe": "mpi", "node_count": 2},
    {"build_project": False},
)
BATCH_SCRIPT = "#!/bin/bash\n#SBATCH --export=ALL\nsrun hostname\n"


def plan(*changes: dict[str, Any], script: str = BATCH_SCRIPT) -> Plan:
    values = dict(BASE)
    for change in changes:
        values |= change
    here = Surroundings(user="me", repo_root=Path("/src/engine"), origin_url=None, batch_script=script)
    kept = {name: value for name, value in values.items() if value is not ...}
    return resolve_plan(check_values(kept), load_catalog(None, explicit=False), here)


def headers(made: Plan) -> dict[str, str]:
    """The scripts of a bundle that sbatch reads."""
    return {file.path: file.text for file in render_bundle(made) if file.path.endswith(".slurm")}


def combinations(most: int) -> list[tuple[dict[str, Any], ...]]:
    """None of the optional parts, each, each pair and so on, and all of them."""
    few = [combo for size in range(most + 1) for combo in itertools.combinations(OPTIONAL, size)]
    return [*few, OPTIONAL]


def test_every_directive_stands_on_a_line_of_its_own_above_the_first_command() -> None:
    # HDR-01, HDR-14
    for combo in combinations(2):
        made = plan(*combo)
        for path, text in headers(made).items():
            lines = text.splitlines()
            first = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
            found = [line for line in lines if "#SBATCH" in line]
            options = made.holes["job_options" if path == "recipes/job.slurm" else "build_options"]
            assert text.startswith("#!/usr/bin/env bash\n")
            assert found == [line for line in lines[:first] if line.startswith("#SBATCH --")], path
            assert len(found) == len(options)
            assert text.endswith("\n")
            assert not text.endswith("\n\n")
            assert [shlex.split(line, comments=False)[1] for line in found] == list(options)


def test_what_sbatch_reads_is_what_the_plan_says() -> None:
    # HDR-01: this reader stops where sbatch does.
    for path, text in headers(plan(*OPTIONAL[:-1])).items():
        words = read_directives(text)
        assert [word for word in words if word.startswith("--job-name=")], path
        assert [word for word in words if word.startswith("--time=")], path


def test_no_combination_of_fields_gives_an_option_twice_or_without_its_value() -> None:
    # HDR-11, HDR-14, GEN-03
    for combo in combinations(len(OPTIONAL) - 1):
        made = plan(*combo)
        for options in (made.holes["job_options"], made.holes["build_options"]):
            names = [option.partition("=")[0] for option in options]
            assert len(names) == len(set(names)), names
            assert not [option for option in options if option.endswith("=") or "None" in option]
            assert not [option for option in options if set("$~\n") & set(option)]
            restart = [option for option in options if option in ("--requeue", "--no-requeue")]
            assert len(restart) == 1
            assert ("--open-mode=append" in options) == (restart == ["--requeue"])


def test_log_names_are_relative_and_hold_only_what_slurm_knows_before_the_job_starts() -> None:
    # HDR-05, HDR-06, HDR-07
    for text in headers(plan({"remote_work_dir": "/x/100%", "job_name": "50%run"})).values():
        logs = re.findall(r"^#SBATCH --(?:output|error)=(.*)$", text, re.MULTILINE)
        assert logs
        for log in logs:
            assert not log.startswith("/")
            assert set(re.findall("%.", log)) <= {"%j"}


@pytest.mark.parametrize(
    ("changes", "script", "options"),
    [
        ({}, None, ["--no-requeue"]),
        ({"requeue": False}, None, ["--no-requeue"]),
        ({"requeue": True}, None, ["--requeue", "--open-mode=append"]),
        ({}, "#!/bin/bash\ntrue\n", ["--no-requeue"]),
        ({}, "#!/bin/bash\n#SBATCH --requeue\ntrue\n", ["--requeue", "--open-mode=append"]),
        ({}, "#!/bin/bash\n#SBATCH -N1 --requeue  # it can go on\n", ["--requeue", "--open-mode=append"]),
        ({}, "#!/bin/bash\n#SBATCH --requeue\n#SBATCH --no-requeue\n", ["--no-requeue"]),
        ({}, "#!/bin/bash\ntrue\n#SBATCH --requeue\n", ["--no-requeue"]),
        ({"requeue": False}, "#!/bin/bash\n#SBATCH --requeue\n", ["--no-requeue"]),
    ],
)
def test_whether_a_job_may_start_again_is_said_once_by_the_spec_or_the_users_own_script(
    changes: dict[str, Any], script: str | None, options: list[str]
) -> None:
    # HDR-11
    own = {"command": ..., "script_path": "job.slurm", "build_project": False} if script else {}
    made = plan(changes, own, script=script or "")
    found = [option for option in made.holes["job_options"] if "requeue" in option or "open-mode" in option]
    assert found == options
    assert [option for option in made.holes["build_options"] if "requeue" in option] == ["--no-requeue"]
    assert ("SLURM_RESTART_COUNT" in headers(made)["recipes/job.slurm"]) == ("--requeue" in options and not script)


@pytest.mark.parametrize(
    ("directive", "refused"),
    [
        ("--export=NONE", True),
        ("--export NONE", True),
        ("--export=A,B", True),
        ("--export=ALL --export=NIL", True),
        ("--export=ALL", False),
        ("--export=ALL,A=1", False),
        ("--export=NONE --export=ALL", False),
        ("--exclusive", False),
    ],
)
def test_variables_that_a_batch_script_would_keep_out_are_refused(directive: str, refused: bool) -> None:
    # HDR-09, HDR-10
    script = f"#!/bin/bash\n#SBATCH {directive}\ntrue\n"
    own = {"command": ..., "script_path": "job.slurm", "build_project": False}
    assert plan(own, script=script)["script_name"] == "job.slurm"
    for given in ({"env": {"A": "0,1,2"}}, {"custom_env": "A=0"}, {"pass_env": ["A"]}):
        if not refused:
            assert plan(own, given, script=script)["script_name"] == "job.slurm"
            continue
        with pytest.raises(SpecError) as caught:
            plan(own, given, script=script)
        assert f": {next(iter(given))}: would not reach the job" in str(caught.value)
        assert "#SBATCH --export=" in str(caught.value)


def test_variables_are_exported_in_the_script_and_never_through_an_option() -> None:
    # HDR-09
    for made in (plan({"env": {"DEV": "0,1,2", "X": "y"}}, {"container_image": "ubuntu:24.04"}), plan(*OPTIONAL)):
        for file in render_bundle(made):
            assert not re.search(r"--export\b", file.text), file.path
    assert (
        "\nexport DEV='0,1,2'\nexport X='y'\n"
        in headers(plan({"env": {"DEV": "0,1,2", "X": "y"}}))["recipes/job.slurm"]
    )


FIELDS_OF_A_HEADER = ("account", "partition", "job_name", "qos", "reservation", "constraint", "network", "comment")


@pytest.mark.parametrize("field", [*FIELDS_OF_A_HEADER, "time_limit", "mem", "gpu_clocks", "log_file_pattern"])
@pytest.mark.parametrize(
    "value",
    ["x\ntouch PWNED\n#", "x\rtouch PWNED", "main; rm -rf x", 'a"b', "a`id`b", "$USER-test", "$(id)", "~/x$", "a#b"],
)
def test_nothing_that_sbatch_or_a_shell_could_act_on_gets_into_a_directive(
    tmp_path: Path, field: str, value: str
) -> None:
    # HDR-07, HDR-13
    path = tmp_path / "job_spec.json"
    path.write_text(json.dumps({**BASE, field: value}))
    with pytest.raises(SpecError) as caught:
        read_spec(path)
    (problem,) = caught.value.problems
    assert f": {field}" in problem.place


def test_directives_are_read_as_sbatch_reads_them() -> None:
    # HDR-01: the first line that is no comment ends them.
    text = '#!/bin/bash\n# SBATCH --a\n\n#SBATCH --b="x y"  # why\n#SBATCH -n 3\n  \nset -e\n#SBATCH --c\n'
    assert read_directives(text) == ("--b=x y", "-n", "3")
    assert read_directives('#SBATCH --b="open\n#SBATCH --c\n') == ('--b="open', "--c")
    assert read_directives("") == ()
