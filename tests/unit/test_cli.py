"""The command as people and programs call it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SPEC: dict[str, Any] = {
    "ssh_host": "bigiron",
    "mfa_style": False,
    "remote_cwd": "~/runs",
    "account": "acct",
    "partition": "main",
    "repo_root": "/src/engine",
    "repo_url": "git@git.example.org:a/engine.git",
    "command": "make test",
    "build_project": False,
}


def gen(folder: Path, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    program = str(Path(sys.executable).parent / "gen")
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def write(folder: Path, **changes: Any) -> None:
    values = {name: value for name, value in {**SPEC, **changes}.items() if value is not ...}
    (folder / "job_spec.json").write_text(json.dumps(values, indent=2))


@pytest.mark.req("R58", "R6")
def test_validate_shows_every_value_with_its_origin(tmp_path: Path) -> None:
    write(tmp_path)
    ran = gen(tmp_path, "validate", "job_spec.json")
    assert ran.returncode == 0
    assert re.search(r"^account +acct\n +spec: account$", ran.stdout, re.MULTILINE)
    assert "job_spec.json: valid" in ran.stdout
    as_json = json.loads(gen(tmp_path, "validate", "job_spec.json", "--json").stdout)
    assert as_json["valid"] is True
    assert {"name": "time_limit", "value": "02:00:00", "origin": "default"} in as_json["values"]


def test_validate_shows_no_control_character_to_a_terminal(tmp_path: Path) -> None:
    write(tmp_path, command="echo 'a\x1b]0;title\x07'\nls\u202e")
    ran = gen(tmp_path, "validate", "job_spec.json")
    assert "echo 'a\\u001b]0;title\\u0007'\\nls\\u202e\n" in ran.stdout


@pytest.mark.req("R1", "R58")
def test_all_problems_are_told_at_once_with_exit_code_2(tmp_path: Path) -> None:
    write(tmp_path, node_count=0, partiton="x", time_limit="soon")
    ran = gen(tmp_path, "validate", "job_spec.json")
    assert ran.returncode == 2
    assert "job_spec.json:11: node_count: 0 is not allowed; give 1 or more\n" in ran.stderr
    assert "job_spec.json:12: partiton: unknown field; did you mean 'partition'?\n" in ran.stderr
    assert "time_limit" in ran.stderr
    as_json = json.loads(gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--json").stdout)
    assert len(as_json["problems"]) == 3
    assert not (tmp_path / "out").exists()


@pytest.mark.req("R58", "B15")
def test_bundle_tells_one_verb_a_file(tmp_path: Path) -> None:
    write(tmp_path)
    ran = gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    assert ran.returncode == 0, ran.stderr
    assert "create     out/run_all.sh\n" in ran.stdout
    again = json.loads(gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--json").stdout)
    assert {file["verb"] for file in again["files"]} == {"unchanged"}


def test_an_edited_file_stops_the_bundle_unless_forced(tmp_path: Path) -> None:
    write(tmp_path)
    gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    (tmp_path / "out" / "sync.sh").write_text("edited\n")
    ran = gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    assert ran.returncode == 2
    assert "out: not written by gen, or edited since: sync.sh. Nothing was changed." in ran.stderr
    assert gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--force").returncode == 0


@pytest.mark.req("R1")
def test_a_field_can_be_set_and_a_missing_one_is_not_asked_for_without_a_terminal(tmp_path: Path) -> None:
    write(tmp_path, account=...)
    ran = gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--ask", stdin="typed\n")
    assert ran.returncode == 2
    assert "account: missing" in ran.stderr
    ran = gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--set", "account=other", "--set", "node_count=1")
    assert ran.returncode == 0
    assert "#SBATCH --account=other\n" in (tmp_path / "out" / "recipes" / "job.slurm").read_text()


@pytest.mark.req("R59")
def test_lint_finds_a_fault_and_takes_the_users_own_text_for_a_note(tmp_path: Path) -> None:
    write(tmp_path, command="echo $unquoted; ls | grep x")
    gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    ran = gen(tmp_path, "lint", "out")
    assert ran.returncode == 0
    assert "(your own text: a note)" in ran.stdout
    with (tmp_path / "out" / "sync.sh").open("a") as script:
        script.write("echo $oops\n")
    ran = gen(tmp_path, "lint", "out")
    assert ran.returncode == 1
    assert "sync.sh" in ran.stdout
    assert "SC2086" in ran.stdout
    (tmp_path / "out" / "monitor.sh").write_text("if\n")
    findings = json.loads(gen(tmp_path, "lint", "out", "--json").stdout)["findings"]
    assert ("monitor.sh", "bash -n") in {(finding["path"], finding["tool"]) for finding in findings}


@pytest.mark.req("R58", "R59", "B15")
def test_bundle_lints_what_it_wrote_when_asked_to(tmp_path: Path) -> None:
    write(tmp_path, command="echo $unquoted")
    plain = gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--no-lint")
    linted = gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--lint")
    assert (plain.returncode, linted.returncode) == (0, 0)
    assert "shellcheck" not in plain.stdout
    assert re.search(r"^command\.sh:\d+: shellcheck: SC2086 .*\(your own text: a note\)$", linted.stdout, re.MULTILINE)
    assert linted.stdout.endswith("\nout: no findings\n")
    assert "findings" not in json.loads(gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--json").stdout)
    (tmp_path / "out" / "extra.sh").write_text("echo $x\n")
    ran = gen(tmp_path, "bundle", "job_spec.json", "-o", "out", "--lint", "--json")
    told = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert {finding["path"] for finding in told["findings"]} == {"command.sh", "extra.sh"}
    assert {file["verb"] for file in told["files"]} == {"unchanged"}


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (("--help",), []),
        (("bundle", "--help"), []),
        (("validate", "job_spec.json"), ["slurm_bundle.fields"]),
        (("bundle", "job_spec.json", "-o", "out"), ["jinja2", "slurm_bundle.fields"]),
        (("lint", "out"), []),
    ],
)
def test_a_command_loads_models_and_templates_only_where_it_needs_them(
    tmp_path: Path, arguments: tuple[str, ...], loaded: list[str]
) -> None:
    write(tmp_path)
    gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    program = """
import sys
from slurm_bundle.cli import main
try:
    main()
finally:
    print(*sorted({"jinja2", "rich", "slurm_bundle.fields", "tomllib"} & sys.modules.keys()), file=sys.stderr)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stderr.splitlines()[-1].split() == loaded


@pytest.mark.req("R59", "R34")
def test_lint_takes_the_users_own_batch_script_for_a_note(tmp_path: Path) -> None:
    (tmp_path / "my job.sh").write_text("#!/bin/bash\nif [ $x = 1 ]; then\n  eval ls\nfi\n")
    write(tmp_path, command=..., script_path="my job.sh")
    gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    ran = gen(tmp_path, "lint", "out")
    assert ran.returncode == 0
    remarks = [line for line in ran.stdout.splitlines() if line.startswith("recipes/my job.sh:2: shellcheck: SC")]
    assert remarks
    assert all(line.endswith("(your own text: a note)") for line in remarks)


@pytest.mark.req("B15")
def test_the_schema_takes_what_gen_takes_and_describes_every_field(tmp_path: Path) -> None:
    schema = json.loads(gen(tmp_path, "schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for spec in (Path(__file__).parents[1] / "data").glob("*.json"):
        assert list(validator.iter_errors(json.loads(spec.read_text()))) == []
    assert list(validator.iter_errors({**SPEC, "partiton": "x"}))
    assert list(validator.iter_errors({**SPEC, "node_count": "2"}))
    assert all("description" in field for field in schema["properties"].values())


def test_what_is_no_bundle_and_no_file_is_told_plainly(tmp_path: Path) -> None:
    assert gen(tmp_path, "lint", ".").returncode == 2
    ran = gen(tmp_path, "validate", "nothing.json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "there is no file nothing.json" in ran.stderr
    assert gen(tmp_path, "--version").stdout.startswith("gen 0.")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("--help",), 0),
        (("schema",), 0),
        (("validate", "job_spec.json"), 0),
        (("frobnicate",), 2),
        (("validate",), 2),
        (("validate", "job_spec.json", "--no-such-option"), 2),
        (("bundle", "job_spec.json"), 2),
        (("validate", "job_spec.json", "--set", "novalue"), 2),
        (("validate", "job_spec.json", "--catalog", "nothing.toml"), 2),
        (("run", "."), 2),
    ],
)
def test_the_exit_code_says_whether_it_was_wrong_use(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    write(tmp_path)
    ran = gen(tmp_path, *arguments)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stderr or code == 0


def test_what_it_prints_fits_in_80_columns(tmp_path: Path) -> None:
    write(tmp_path, work_dir=..., mfa_style=None)
    for arguments in (
        ("validate", "job_spec.json"),
        ("bundle", "job_spec.json", "-o", "out"),
        ("lint", "out"),
        ("--help",),
        ("bundle", "--help"),
    ):
        ran = gen(tmp_path, *arguments)
        assert ran.returncode == 0
        assert [line for line in (ran.stdout + ran.stderr).splitlines() if len(line) > 80] == []
        assert "\x1b" not in ran.stdout + ran.stderr


@pytest.mark.req("B15")
def test_lint_in_json_tells_each_finding_with_its_place(tmp_path: Path) -> None:
    write(tmp_path)
    gen(tmp_path, "bundle", "job_spec.json", "-o", "out")
    clean = gen(tmp_path, "lint", "out", "--json")
    assert (clean.returncode, json.loads(clean.stdout)) == (0, {"findings": [], "not_installed": []})
    (tmp_path / "out" / "login" / "poll.sh").write_text("# shellcheck shell=bash\nif true; then\n  echo $x\nfi\n")
    ran = gen(tmp_path, "lint", "out", "--json")
    assert ran.returncode == 1
    found = {(f["path"], f["line"], f["tool"]) for f in json.loads(ran.stdout)["findings"]}
    assert {("login/poll.sh", 3, "shellcheck"), ("login/poll.sh", 1, "shfmt")} <= found


def test_a_limit_that_people_misread_is_told_wherever_somebody_looks(tmp_path: Path) -> None:
    # TIM-01
    said = "time_limit: 24:00 is 24 minutes to Slurm; for 24 hours write 24:00:00"
    write(tmp_path, time_limit="24:00")
    checked = gen(tmp_path, "validate", "job_spec.json")
    assert said in re.sub(r"\s+", " ", checked.stderr)
    assert re.search(r"^time_limit +00:24:00\n +spec: time_limit, written 24:00$", checked.stdout, re.MULTILINE)
    as_json = json.loads(gen(tmp_path, "validate", "job_spec.json", "--json").stdout)["remarks"]
    assert f"job_spec.json:11: {said}" in [f"{remark['place']}: {remark['message']}" for remark in as_json]
    assert said in re.sub(r"\s+", " ", gen(tmp_path, "bundle", "job_spec.json", "-o", "out").stderr)
    for file in ("README.md", "config.sh"):
        assert said in (tmp_path / "out" / file).read_text()
    assert "#SBATCH --time=00:24:00\n" in (tmp_path / "out" / "recipes" / "job.slurm").read_text()
