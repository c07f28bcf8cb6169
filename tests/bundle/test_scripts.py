"""The generated scripts as text: what every one of them has to be, for every golden."""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.catalog import load_catalog
from slurm_bundle.lint import lint_bundle
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.render import BundleFile, render_bundle
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import check_values

ROOT = Path(__file__).parents[2]
GOLDENS = sorted(path.parent for path in (ROOT / "generated").glob("*/spec.json"))

# Neither bash 3.2 nor BSD tools have these.
TOO_NEW = "|".join(
    (
        r"\bmapfile\b|\breadarray\b|declare -A|\$\{\w+,,|\$\{\w+\^\^|&>>|\|&|local -n|@Q\}|\bcoproc\b",
        r"wait -n|\[\[ -v|printf '%\(|BASHPID|EPOCH|sed -i|date -d|readlink -f|stat -c|grep -P|xargs -r",
        r"base64 -w|mktemp --|\bsha256sum\b|\btimeout +[0-9\"$-]",
    )
)


# None of these gives a bundle another feature.
OTHER_VALUES: dict[str, Any] = {
    "ssh_host": "elsewhere",
    "slurm_user": "another",
    "remote_cwd": "/elsewhere/a b",
    "default_user_root_dir": "/elsewhere",
    "remote_repo_path": "/elsewhere/it's here",
    "remote_work_dir": "/elsewhere/100% {x} (it)",
    "account": "other",
    "partition": "p2",
    "job_name": "another",
    "model_name": "None",
    "time_limit": "9h",
    "mem": "64G",
    "exclusive": True,
    "qos": "high",
    "constraint": "a&b",
    "comment": "True",
    "sbatch_options": ["--nice=7"],
    "repo_root": "/elsewhere/src",
    "repo_url": "https://git.example.org/x/y.git",
    "refresh_paths": ["a/", "b c/"],
    "env": {"OTHER": "it's"},
    "monitor_timeout": "7h",
    "poll_seconds": 77,
    "hang_patterns": ["stuck"],
    "success_patterns": ["yes"],
    "failure_patterns": ["no"],
    "log_file_pattern": "other_%j.out",
}


def make_plan(golden: Path, **changes: Any) -> Plan:
    values = {**json.loads((golden / "spec.json").read_text()), **changes}
    script = values.get("script_path")
    here = Surroundings(
        user="me",
        repo_root=Path(values["repo_root"]),
        origin_url=None,
        batch_script=(golden / script).read_text() if script else None,
    )
    return resolve_plan(check_values(values, folder=golden), load_catalog(None, explicit=False), here)


def scripts(golden: Path) -> list[Path]:
    found = sorted(path for path in (golden / "bundle").rglob("*") if path.suffix in (".sh", ".slurm"))
    return [path for path in found if path.name != "job.slurm" or golden.name != "batch"]


def code(text: str) -> str:
    """A script without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


@pytest.fixture(params=GOLDENS, ids=lambda golden: golden.name)
def golden(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


@pytest.mark.req("R59")
def test_the_linters_have_nothing_to_say(golden: Path) -> None:
    own = frozenset({"recipes/job.slurm"}) if golden.name == "batch" else frozenset()
    findings, absent = lint_bundle(golden / "bundle", user_files=own)
    assert absent == []
    assert [str(finding) for finding in findings if not finding.note] == []


def test_no_script_suppresses_a_finding_but_config_with_its_reason(golden: Path) -> None:
    for path in scripts(golden):
        lines = [line for line in path.read_text().splitlines() if "shellcheck disable" in line]
        assert len(lines) == (1 if path.name == "config.sh" else 0), path
        assert all("  # " in line for line in lines)


def test_each_script_begins_with_its_facts(golden: Path) -> None:
    for path in scripts(golden):
        if path.name in ("config.sh", "command.sh", "build_command.sh"):
            continue
        header = path.read_text().split("\n\n")[0]
        assert re.search(r"^# [A-Z].*[.:,]", header, re.MULTILINE), path
        assert "# Runs on:  " in header, path


def test_each_script_reads_well_in_its_length_and_letters(golden: Path) -> None:
    for path in scripts(golden):
        text = path.read_text()
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        if path.name not in ("config.sh", "job.slurm", "command.sh"):
            assert text.isascii(), path
            assert len(text.splitlines()) <= 135, path


def test_directives_come_before_the_first_command_one_a_line(golden: Path) -> None:
    for path in (golden / "bundle").rglob("*.slurm"):
        lines = path.read_text().splitlines()
        first = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
        assert not any(line.startswith("#SBATCH") for line in lines[first:]), path
        assert not any("#SBATCH" in line[1:] for line in lines if "sbatch" not in line), path


@pytest.mark.req("B16")
def test_the_local_side_uses_nothing_that_bash_32_or_bsd_tools_lack(golden: Path) -> None:
    manifest = json.loads((golden / "bundle" / "MANIFEST.json").read_text())
    for entry in manifest["files"]:
        if entry["side"] == "local":
            found = re.search(TOO_NEW, code((golden / "bundle" / entry["path"]).read_text()))
            assert found is None, (entry["path"], found)


def test_nothing_is_evaluated_or_cut_short_or_left_over_from_python(golden: Path) -> None:
    for path in scripts(golden):
        if path.name in ("config.sh", "command.sh", "build_command.sh"):
            continue
        text = code(path.read_text())
        assert not re.search(r"\beval\b|^[^'$]*`|[^|]\| *(grep -\w*q|head)\b", text, re.MULTILINE), path
        assert not re.search(r"\b(None|True|False|Undefined)\b|=$", re.sub(r"=\n|=''", "", text)), path


@pytest.mark.req("R37")
def test_cuda_visible_devices_is_never_touched(golden: Path) -> None:
    assert not [path for path in scripts(golden) if "CUDA_VISIBLE_DEVICES" in path.read_text()]


@pytest.mark.req("R38")
def test_every_submission_and_every_step_is_named(golden: Path) -> None:
    for path in scripts(golden):
        for step in re.findall(r"^\s*srun [^\n]*(?:\\\n[^\n]*)*", code(path.read_text()), re.MULTILINE):
            assert '"${options[@]}"' in step or "--job-name" in step, path
        if path.suffix == ".slurm":
            assert "#SBATCH --job-name=" in path.read_text()


@pytest.mark.req("R6", "R62")
def test_config_gives_bash_the_very_values_of_the_plan(golden: Path) -> None:
    config = golden / "bundle" / "config.sh"
    for setting in make_plan(golden).settings:
        words = setting.value if isinstance(setting.value, tuple) else (str(setting.value),)
        show = f'. "$1"; printf "%s\\0" "${{#{setting.name}[@]}}" ${{{setting.name}[@]+"${{{setting.name}[@]}}"}}'
        done = subprocess.run(["bash", "-c", show, "x", config], capture_output=True, check=True)
        assert done.stdout.decode().split("\0")[:-1] == [str(len(words)), *words], setting.name


@pytest.mark.req("B6")
def test_the_same_plan_gives_the_same_bytes(golden: Path) -> None:
    assert render_bundle(make_plan(golden)) == render_bundle(make_plan(golden))


def test_other_values_leave_every_script_but_those_with_values_as_it_was(golden: Path) -> None:
    def by_path(files: tuple[BundleFile, ...]) -> dict[str, str]:
        return {file.path: file.text for file in files}

    one = by_path(render_bundle(make_plan(golden)))
    two = by_path(render_bundle(make_plan(golden, **OTHER_VALUES)))
    assert list(one) == list(two)
    differing = {path for path in one if one[path] != two[path]}
    values = {"config.sh", "recipes/job.slurm", "build.slurm", "README.md", "MANIFEST.json", "SHA256SUMS"}
    assert differing <= values
    assert "config.sh" in differing


def test_nothing_of_the_machine_that_made_it_is_in_a_bundle(golden: Path) -> None:
    # A short name may be a word that stands there anyhow; that of a container never is.
    host = socket.gethostname()
    names = [re.escape(name) for name in (host,) if len(name) >= 8 and name != "localhost"]
    for path in (golden / "bundle").rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert str(Path.home()) + "/" not in text, path
            assert not [name for name in names if re.search(rf"\b{name}\b", text)], path


@pytest.mark.req("R63")
def test_a_bundle_works_from_anywhere_under_any_name_and_without_a_place_to_write(tmp_path: Path) -> None:
    moved = tmp_path / "my bundle"
    shutil.copytree(ROOT / "generated" / "minimal" / "bundle", moved)
    done = subprocess.run([moved / "run_all.sh", "--dry-run"], cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("preflight     Check that")
    assert not (moved / ".run").exists()
    state = tmp_path / "state"
    env = {"PATH": "/usr/bin:/bin", "GEN_STATE_DIR": str(state)}
    done = subprocess.run([moved / "monitor.sh"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no job has been submitted. Run ./submit.sh first." in done.stderr
    assert not (moved / ".run").exists()
