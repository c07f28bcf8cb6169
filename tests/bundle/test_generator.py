"""The text of bundles of many kinds: what a generator of shell gets wrong when it is careless."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.catalog import load_catalog
from slurm_bundle.fields import Spec
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.problems import SpecError
from slurm_bundle.render import BundleFile, render_bundle, templates_folder
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import check_values

BASE: dict[str, Any] = {
    "ssh_host": "bigiron",
    "remote_cwd": "/home/a/runs",
    "account": "acct",
    "partition": "main",
    "repo_root": "/src/engine",
    "repo_url": "git@git.example.org:a/engine.git",
    "command": "make test",
}
# Together these have every feature that a template asks for.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"mfa_style": False, "build_project": False},
    "batch": {"command": ..., "script_path": "job.slurm", "pass_env": ["TOKEN_FILE"], "env": {"A": "1"}},
    "built": {
        "build_command": "make",
        "mfa_style": True,
        "create_remote_cwd": True,
        "remote_init": "module load slurm",
    },
    "mpi": {
        "recipe": "mpi",
        "node_count": 2,
        "gpus_per_node": 8,
        "cpus_per_task": 4,
        "network": "sharp",
        "gpu_clocks": "2619,1980",
        "requeue": True,
        "container_image": "a:1",
        "container_writable": True,
        "container_mount_home": True,
        "mounts": ["/d:/d:ro"],
        "extra_files": ["x.json"],
    },
    "launcher": {"recipe": "launcher", "node_count": 2, "container_image": "a:1", "pass_env": ["TOKEN_FILE"]},
    "distributed": {"recipe": "distributed", "node_count": 2, "success_patterns": ["ok"], "hang_patterns": []},
}


def plan(values: dict[str, Any]) -> Plan:
    kept = {name: value for name, value in values.items() if value is not ...}
    here = Surroundings(user="me", repo_root=Path("/src/engine"), origin_url=None, batch_script="#!/bin/bash\ntrue\n")
    return resolve_plan(check_values(kept), load_catalog(None, explicit=False), here)


@cache
def bundle(kind: str) -> tuple[BundleFile, ...]:
    return render_bundle(plan({**BASE, **KINDS[kind]}))


def code(text: str) -> str:
    """A script without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def lines_with(mark: str, text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if mark in line}


def test_every_length_of_an_array_that_a_template_has_is_in_a_bundle() -> None:
    # GEN-01: ${# looks like the beginning of a comment to Jinja.
    written: dict[str, set[str]] = {}
    for kind in KINDS:
        for file in bundle(kind):
            written.setdefault(file.path, set()).update(lines_with("${#", file.text))
    there = {
        path.relative_to(templates_folder()).as_posix(): lines_with("${#", path.read_text())
        for path in templates_folder().rglob("*")
        if path.is_file()
    }
    assert sum(map(len, there.values())) >= 5
    assert {path: lines for path, lines in written.items() if lines} == {
        p: lines for p, lines in there.items() if lines
    }


def test_every_line_of_a_template_but_its_tags_comes_out_in_some_bundle() -> None:
    # GEN-01, GEN-03: nothing is eaten, and nothing stands there that no spec brings out.
    written: dict[str, set[str]] = {}
    for kind in KINDS:
        for file in bundle(kind):
            written.setdefault(file.path, set()).update(map(str.strip, file.text.splitlines()))
    for path in templates_folder().rglob("*"):
        if path.is_file():
            name = path.relative_to(templates_folder()).as_posix()
            plain = {line.strip() for line in path.read_text().splitlines() if not re.search("{[{%]|{##|##}", line)}
            assert plain - written.get(name, set()) == set(), name


@pytest.mark.parametrize("kind", KINDS)
def test_shell_is_written_as_shell_and_not_as_html(kind: str) -> None:
    # GEN-02
    command = "a && b 'c' \"d\" <e> & f"
    values: dict[str, Any] = {"env": {"X": command}, "success_patterns": [command], "remote_work_dir": "/x/a & <b> 'c'"}
    own = {} if kind == "batch" else {"command": command}
    files = {file.path: file.text for file in render_bundle(plan({**BASE, **KINDS[kind], **own, **values}))}
    assert not [path for path, text in files.items() if re.search(r"&(amp|lt|gt|quot|#3[49]);", text)]
    if own:
        assert command in files["command.sh"]


def given_nothing(field: str) -> Iterator[Any]:
    """The ways to give no value: absent, null, and for a text or a list the empty one."""
    yield from (..., None, "", [], {})


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_nobody_gave_is_never_written_as_a_word(kind: str) -> None:
    # GEN-03: each optional field in turn. Plans that come out the same are looked at once.
    seen = set()
    for field in Spec.model_fields:
        for nothing in given_nothing(field):
            try:
                made = plan({**BASE, **KINDS[kind], field: nothing})
            except SpecError:
                continue
            look = repr((made.settings, sorted(made.features), sorted(made.holes.items()), sorted(made.texts.items())))
            look = re.sub("[0-9a-f]{12}", "", look)
            if look in seen:
                continue
            seen.add(look)
            for file in render_bundle(made):
                if file.side in ("local", "login", "node", "values"):
                    text = code(file.text)
                    assert not re.search(r"\b(None|True|False|Undefined)\b|\[\]", text), (field, nothing, file.path)
                    assert not re.search(r"^#SBATCH .*=$", file.text, re.MULTILINE), (field, nothing, file.path)
    assert len(seen) > 5


def test_the_home_folder_of_this_machine_is_only_in_what_is_read_here(tmp_path: Path) -> None:
    # GEN-11
    home = tmp_path / "home of me"
    home.mkdir()
    gen = Path(sys.executable).parent / "gen"
    spec = {
        **BASE,
        "remote_cwd": "~/runs",
        "repo_root": "~/src/engine",
        "extra_files": ["~/data.json"],
        "recipe": "mpi",
    }
    spec |= {"container_image": "~/images/a.sqsh", "mounts": ["~/d:/d", "~/x"]}
    (tmp_path / "job_spec.json").write_text(json.dumps(spec))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "USER": "localuser", "LOGNAME": "localuser"}
    done = subprocess.run([gen, "bundle", "job_spec.json", "-o", "out"], cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "out").rglob("*"):
        if not path.is_file() or path.name == "README.md":
            continue
        for line in path.read_text().splitlines():
            if str(home) in line:
                assert line.startswith(("readonly REPO_ROOT=", "readonly EXTRA_FILES=")), (path, line)
            assert "~localuser" not in line


def test_local_paths_start_at_the_folder_of_the_spec_wherever_gen_is_called(tmp_path: Path) -> None:
    # GEN-09
    folder = tmp_path / "specs"
    folder.mkdir()
    spec = {**BASE, "repo_root": ".", "extra_files": ["data/x.json"], "recipe": "mpi"}
    (folder / "job_spec.json").write_text(json.dumps(spec))
    gen = Path(sys.executable).parent / "gen"
    done = run(gen, "bundle", "specs/job_spec.json", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    config = (tmp_path / "out" / "config.sh").read_text()
    assert f"\nreadonly REPO_ROOT='{folder}'\n" in config
    assert f"\nreadonly EXTRA_FILES=('{folder}/data/x.json')\n" in config


def test_the_files_of_a_bundle_are_those_of_its_manifest(tmp_path: Path) -> None:
    # GEN-10
    gen = Path(sys.executable).parent / "gen"
    for kind in ("mpi", "plain", "built"):
        values = {name: value for name, value in {**BASE, **KINDS[kind]}.items() if value is not ...}
        (tmp_path / "job_spec.json").write_text(json.dumps(values))
        done = run(gen, "bundle", "job_spec.json", "-o", "out", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        out = tmp_path / "out"
        there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        listed = {entry["path"] for entry in json.loads((out / "MANIFEST.json").read_text())["files"]}
        assert there == listed | {"MANIFEST.json", "SHA256SUMS"}, kind


@pytest.mark.req("R63")
def test_a_bundle_that_cannot_keep_its_state_says_where_it_could(moved: Path) -> None:
    # GEN-09: a file in the place of its folder stops root, too.
    (moved / ".run").write_text("")
    done = run("bash", moved / "run_all.sh")
    assert done.returncode == 2
    assert "cannot write to " in done.stderr
    assert "Set GEN_STATE_DIR to a folder that can be written to" in done.stderr


LOCAL_STEPS = ("preflight", "sync", "submit_build", "submit", "monitor", "collect", "cleanup", "run_all")


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A bundle under a name with blanks, without the right to run its scripts, and read-only."""
    place = tmp_path / "my bundle"
    place.mkdir()
    for file in bundle("built"):
        path = place / file.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(file.text)
        path.chmod(0o444)
    return place


def run(*command: str | Path, cwd: Path | str = "/", **env: str) -> "subprocess.CompletedProcess[str]":
    own = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **env}
    return subprocess.run(command, cwd=cwd, env=own, capture_output=True, text=True, check=False)


@pytest.mark.req("R63")
@pytest.mark.parametrize("step", LOCAL_STEPS)
def test_a_step_that_is_called_by_a_link_says_so_and_does_nothing(moved: Path, tmp_path: Path, step: str) -> None:
    # GEN-09
    link = tmp_path / "go"
    link.symlink_to(moved / f"{step}.sh")
    done = run("bash", link)
    assert done.returncode == 2
    assert done.stderr == f"{link}: no bundle around it. Call it by its own path, not by a link\n"


@pytest.mark.req("R63")
def test_a_bundle_is_found_from_every_folder_and_past_a_cdpath(moved: Path, tmp_path: Path) -> None:
    # GEN-09
    (tmp_path / "elsewhere" / "my bundle").mkdir(parents=True)
    calls: list[tuple[tuple[Path | str, ...], Path | str]] = [
        ((moved / "run_all.sh",), "/"),
        (("my bundle/run_all.sh",), tmp_path),
        (("./run_all.sh",), moved),
        (("login/../run_all.sh",), moved),
    ]
    for command, cwd in calls:
        done = run("bash", *command, "--dry-run", cwd=cwd, CDPATH=str(tmp_path / "elsewhere"))
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.startswith("preflight     Check that"), command


@pytest.mark.req("R63")
def test_a_bundle_that_lost_its_modes_still_runs_its_steps(moved: Path, tmp_path: Path) -> None:
    # GEN-09: as after a mail, or from a file system that runs nothing.
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: Could not resolve hostname bigiron' >&2\nexit 255\n")
    ssh.chmod(0o755)
    done = run("bash", moved / "run_all.sh", GEN_STATE_DIR=str(tmp_path / "state"), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode in (3, 4), done.stderr
    assert "preflight: " in done.stderr
    assert "ermission denied" not in done.stderr


# Beside what test_scripts.py denies: what fails on bash 3.2.48 at run time or in its parser only.
ALSO_TOO_NEW = (
    r"\$\{\w+\[-\d+\]\}",  # ${a[-1]}
    r"\{\w+\}[<>]",  # {fd}>file
    r"read [^|;]*-t *\d*\.\d",  # a fraction of a second
    r"declare -[gn]|local -[An]|readonly -A|typeset -A",
    r"\$\(\([^)]*\*\*",  # a power
    r"shopt -s (globstar|lastpipe|inherit_errexit)",
    r";;&|;&",
    r"\$\{!\w+@[QEPAa]\}|\$\{\w+@[A-Za-z]\}",
    r"printf -v '?\w+\[",
)
# Options and commands that only GNU tools have.
GNU_ONLY = (
    r"\b(sha256sum|md5sum|tac|nproc|realpath|shuf|numfmt|stdbuf|setsid|flock|gawk|mapfile)\b",
    r"(?m)(^|[|;&({`]|\bthen|\bdo|\bexec) *timeout ",
    r"\bsed +(-[a-zA-Z]*i|--|-r\b|-[a-zA-Z]*z)",
    r"\b(date|stat|mktemp|readlink|tail|head|sort|cut|tr|wc|grep|cat|cp|mv|rm|mkdir|ls|ln|dirname|basename|du) +--\w",
    r"\bdate +(-d|-I|\+%N)|\bstat +-c|\breadlink +-f|\bgrep +-[a-zA-Z]*P|\bsort +-[a-zA-Z]*V|\b(cp|mv) +-[a-zA-Z]*[aT]",
    r"\bxargs +[^|;]*-(r|d)\b|\bbase64 +-w|\bhead +-n *-\d|\bfind [^|;]*-(printf|quit)|\bln +-[a-z]*[rT]|\btouch +-d",
    r"\bsed +(?!-n?E)[^;\n]*\\[+?|]|\bsed [^;\n]*\\[tws]",  # extensions of GNU to regular expressions
)


@pytest.mark.req("B16")
@pytest.mark.parametrize("kind", KINDS)
def test_the_local_side_has_no_word_of_a_newer_bash_or_of_gnu_tools(kind: str) -> None:
    # GEN-05, GEN-06
    for file in bundle(kind):
        if file.side != "local":
            continue
        text = code(file.text)
        for denied in (*ALSO_TOO_NEW, *GNU_ONLY):
            assert not re.search(denied, text), (file.path, denied, re.search(denied, text))


@pytest.mark.req("B19")
@pytest.mark.parametrize("kind", KINDS)
def test_no_script_prints_its_environment_or_its_commands(kind: str) -> None:
    # GEN-07
    for file in bundle(kind):
        if file.side in ("local", "login", "node", "values"):
            text = code(file.text)
            assert not re.search(r"\bset -\w*x|xtrace|\bBASH_XTRACEFD|verbose", text), file.path
            assert not re.search(r"\b(printenv|export -p|declare -[px]+|env)\s*($|[|>;])", text, re.MULTILINE), (
                file.path
            )


@pytest.mark.req("B16")
@pytest.mark.parametrize("kind", KINDS)
def test_the_local_side_expands_no_array_that_may_be_empty_without_a_guard(kind: str) -> None:
    # GEN-05: to bash 3.2 and set -u, "${a[@]}" of an empty array is an unset variable.
    never_empty = {"SSH_OPTIONS", "HANG_PATTERNS", "PASS_ENV", "EXTRA_FILES", "REFRESH_PATHS"}
    for file in bundle(kind):
        if file.side == "local":
            bare = re.findall(r'(?<!\+)"\$\{(\w+)\[@\]\}"', code(file.text))
            assert set(bare) <= never_empty, (file.path, bare)
