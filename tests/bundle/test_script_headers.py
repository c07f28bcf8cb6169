"""The headers of the generated scripts, against the text below them; what runs show is in tests/cluster."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.render import Features, render_bundle
from tests.bundle.test_scripts import ROOT, make_plan
from tests.project import photograph
from tests.script_headers import Bundle, lies, list_scripts, read_header

# A golden, and what is changed in its spec: each feature is there in one of these, and missing in another.
MANY = {"node_count": 2, "required_devices_per_node": 2}
BUNDLES: dict[str, tuple[str, dict[str, Any]]] = {
    "minimal": ("minimal", {}),
    "batch": ("batch", {}),
    "awkward-names": ("awkward-names", {}),
    "trtllm-2x8": ("trtllm-2x8", {}),
    "mfa not known": (
        "minimal",
        {"requeue": True, "mfa_style": None, "create_remote_cwd": True, "extra_files": ["/x"]},
    ),
    "distributed": ("minimal", {"recipe": "distributed", "gpu_clocks": "1593,1980", "build_project": True, **MANY}),
    "launcher": (
        "trtllm-2x8",
        {"recipe": "launcher", "network": "sharp", "remote_init": "true", "pass_env": ["T"]},
    ),
    "in a container": (
        "trtllm-2x8",
        {"container_writable": True, "container_mount_home": True, "gpu_clocks": "1593,1980"},
    ),
}


@cache
def render(name: str) -> Bundle:
    golden, changes = BUNDLES[name]
    files = render_bundle(make_plan(ROOT / "generated" / golden, **changes))
    return {file.path: file.text for file in files if file.path.endswith((".sh", ".slurm"))}


@pytest.fixture(params=BUNDLES)
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return render(request.param)


@pytest.mark.req("R63")
def test_headers_name_what_the_text_below_them_does_and_nothing_else(bundle: Bundle) -> None:
    assert lies(bundle) == []


def test_every_script_but_those_of_the_user_has_such_a_header(bundle: Bundle) -> None:
    of_the_user = {"config.sh", "command.sh", "build_command.sh", "login/init.sh"}
    if "command.sh" not in bundle:
        of_the_user |= {path for path in bundle if path.startswith("recipes/")}
    assert set(bundle) - set(list_scripts(bundle)) <= of_the_user
    for path in list_scripts(bundle):
        header = read_header(bundle[path])
        assert header.fact("Runs on"), path
        referred = {place.split()[1] for place in header.places if place.startswith("what ")} - {"each", "your"}
        assert referred <= set(bundle), path


def test_each_feature_is_there_in_one_of_these_bundles_and_missing_in_another() -> None:
    present = [make_plan(ROOT / "generated" / golden, **changes).features for golden, changes in BUNDLES.values()]
    for name in Features.NAMES:
        assert {name in features for features in present} == {True, False}, name


@pytest.mark.parametrize(
    ("path", "old", "new", "lie"),
    [
        ("login/poll.sh", r"^(# Calls: .*) cut\b", r"\1", "Calls: lacks cut; right is: cat cut"),
        ("login/poll.sh", r"^(# Calls: .*)", r"\1 who", "Calls: has who for nothing"),
        ("login/poll.sh", r"^(# Calls: .*)", r"\1 cut", "Calls: has something twice"),
        ("collect.sh", r"^begin_step\n", 'begin_step\nlast=$(find "$state" | sort -u)\n', "Calls: lacks find, sort"),
        ("collect.sh", r"^begin_step\n", "begin_step\ntrap 'rmdir x' INT\n", "Calls: lacks rmdir"),
        ("lib.sh", r"^make_state\(\) \{", "make_state() {\n    touch x", "Calls: lacks touch"),
        ("login/preflight.sh", r"\bask squeue", "ask sinfo", "Calls: lacks sinfo"),
        ("build.slurm", r"(srun .*) bash", r"\1 nice bash", "Calls: lacks nice"),
        ("login/preflight.sh", r" git tar\b(?!,)", r" git rsync tar", "Expects: lacks rsync"),
        ("preflight.sh", r"(\bneed .*) tar\b", r"\1", "Expects: has tar for nothing"),
        ("sync.sh", r", login/sync\.sh", "", "Reads: lacks login/sync.sh"),
        ("submit.sh", r"(# Sends: .*) and command\.sh", r"\1", "Sends: lacks command.sh"),
        ("sync.sh", r"REMOTE_REPO on the cluster; ", "", "Writes: lacks REMOTE_REPO"),
        ("sync.sh", r"^(# Writes: .*)", r"\1; the moon, too", "Writes: 'the moon, too'"),
        ("sync.sh", r"a scratch folder, gone again when this ends; ", "", "Writes: lacks a scratch folder"),
        ("login/submit.sh", r"the queue: one job is submitted; ", "", "Writes: lacks the queue"),
        ("facts.sh", r"^# Writes: .*\n", "", "Writes: lacks .run/"),
        ("monitor.sh", r"10 out of memory, ", "", "Exit: lacks 10"),
        ("submit_build.sh", r"12 cluster error, ", "", "Exit: lacks 12"),
        ("submit.sh", r"^begin_step\n", "begin_step\nneed 3 scp\n", "Exit: lacks 3"),
        ("run_all.sh", r"^(# Exit: .*) 3 preflight,", r"\1 3 preflight, 4 log in,", "Exit: has 4 for nothing"),
    ],
)
def test_a_lie_is_found(path: str, old: str, new: str, lie: str) -> None:
    bundle = dict(render("trtllm-2x8"))
    bundle[path], changed = re.subn(old, new, bundle[path], count=1, flags=re.MULTILINE)
    assert changed == 1
    assert any(f"{path}: {lie}" in found for found in lies(bundle)), lies(bundle)


@pytest.mark.parametrize("script", ["build.sh", "task.sh"])
def test_what_runs_inside_of_a_job_does_with_what_its_header_names(script: str, tmp_path: Path) -> None:
    plan = make_plan(
        ROOT / "generated" / "minimal",
        build_project=True,
        build_command="echo built >built",
        command='echo done >"$WORK_DIR/result"',
    )
    texts = {file.path: file.text for file in render_bundle(plan)}
    scripts, tools, marks = (tmp_path / name for name in ("SCRIPTS_DIR", "bin", "MARKS"))
    for folder in (scripts, scripts / "log", marks, tools, tmp_path / "REPO_DIR", tmp_path / "WORK_DIR"):
        folder.mkdir()
    for name in (script, "command.sh", "build_command.sh"):
        (scripts / name).write_text(texts[name])
    header = read_header(texts[script])
    for name in header.calls:
        (tools / name).symlink_to(shutil.which(name) or name)
    env = {"PATH": str(tools), "SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "WORK_DIR": str(tmp_path / "WORK_DIR")}
    command = ["/bin/sh" if script == "task.sh" else "/bin/bash", str(scripts / script)]
    before = photograph(tmp_path)
    of_build = ["image", "root", str(scripts), str(tmp_path / "REPO_DIR")]
    of_task = [str(marks), str(tmp_path / "REPO_DIR"), str(scripts / "command.sh")]
    arguments = of_build if script == "build.sh" else of_task
    done = subprocess.run([*command, *arguments], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    after = photograph(tmp_path)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    places = {place.replace("what command.sh writes", "WORK_DIR/result") for place in header.places}
    assert {path for path in changed if not path.startswith(tuple(places))} == set()
    assert {place for place in places if not any(path.startswith(place) for path in changed)} == set()
    assert (
        "Runs on:" in subprocess.run([*command, "--help"], env=env, check=True, capture_output=True, text=True).stdout
    )
