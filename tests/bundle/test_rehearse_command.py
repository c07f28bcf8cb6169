"""gen rehearse as it is called: what it prints, to whom, its exit codes, and what it leaves."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MINIMAL = ROOT / "generated" / "minimal" / "bundle"
BATCH = ROOT / "generated" / "batch" / "bundle"

pytestmark = pytest.mark.req("B5")


def start(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    for name in ("home", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    return subprocess.Popen(
        [Path(sys.executable).parent / "gen", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def gen(folder: Path, *arguments: str) -> tuple[int, str, str]:
    with start(folder, *arguments) as running:
        out, said = running.communicate(timeout=300)
        return running.returncode, out, said


def test_it_shows_the_run_as_gen_run_does_with_paths_as_they_are_outside(tmp_path: Path) -> None:
    code, out, said = gen(tmp_path, "rehearse", str(MINIMAL))
    assert code == 0, said
    assert out == f"{MINIMAL}: rehearsed success: exit code 0, PASSED: as it has to be\n"
    steps = re.findall(r"^ +\d+:\d\d  (\w+): ", said, re.MULTILINE)
    assert list(dict.fromkeys(steps)) == ["preflight", "sync", "submit", "monitor", "collect"]
    assert "gen-rehearsal-" not in said
    assert list((tmp_path / "home").iterdir()) == list((tmp_path / "tmp").iterdir()) == []


def test_a_failure_that_is_rehearsed_ends_as_it_has_to_and_is_no_failure_of_the_rehearsal(tmp_path: Path) -> None:
    code, out, said = gen(tmp_path, "rehearse", str(BATCH), "--scenario", "job-failure")
    assert (code, "exit code 1, FAILED: as it has to be" in out) == (0, True), said
    assert "monitor: next: " in said


def test_the_record_has_each_command_by_its_side_and_each_file(tmp_path: Path) -> None:
    code, _, said = gen(tmp_path, "rehearse", str(MINIMAL), "--transcript", "record.txt", "--keep", "kept")
    assert code == 0, said
    record = (tmp_path / "record.txt").read_text()
    assert str(tmp_path) not in record
    lines = record.splitlines()
    for step, side, words in (
        ("preflight", "here", "ssh -T -o BatchMode=yes "),
        ("sync", "here", "git "),
        ("sync", "login node", "git clone --no-checkout -- git@git.example.org:hpcuser/engine.git "),
        ("submit", "login node", "sbatch --parsable "),
        ("monitor", "login node", "squeue --noheader "),
    ):
        began = lines.index(f"{step}:")
        own = lines[began : lines.index("", began)]
        assert [line for line in own if re.match(rf" +\d+:\d\d  {side} +{re.escape(words)}", line)], (step, words)
    assert re.search(r"^ +\d+:\d\d  node +srun --nodes=1 ", record, re.MULTILINE)
    sync = record.partition("\nsync:\n")[2].partition("\n\n")[0]
    assert re.search(r"^ +wrote .*/runs/engine/hello.py$", sync, re.MULTILINE)
    assert re.search(r"/log/job\.4001\.exit$", record.partition("Files on the cluster in the end:")[2], re.MULTILINE)
    assert (tmp_path / "kept" / "success" / "state" / "report.json").exists()


def test_for_programs_each_event_is_a_line_and_the_record_the_last(tmp_path: Path) -> None:
    code, out, said = gen(tmp_path, "rehearse", str(MINIMAL), "--json", "--scenario", "ssh-drop-during-sync")
    assert (code, said) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    last = events[-1]
    assert (last["event"], last["scenario"], last["as_expected"], last["lost"]) == (
        "rehearsed",
        "ssh-drop-during-sync",
        True,
        [],
    )
    assert [(run["exit_code"], run["status"]) for run in last["runs"]] == [(13, ""), (0, "PASSED")]
    ends = [(event["step"], event["code"]) for event in events if event["event"] == "end"]
    assert [end for end in ends if end[0] == "sync"] == [("sync", 13), ("sync", 0)]
    assert {command["side"] for command in last["commands"]} == {"local", "login", "node"}
    assert {command["step"] for command in last["commands"] if command["command"] == "sbatch"} == {"submit"}


def test_all_scenarios_make_a_table_of_80_columns(tmp_path: Path) -> None:
    code, out, said = gen(tmp_path, "rehearse", str(BATCH), "--all")
    assert (code, said) == (0, ""), out
    *rows, end = out.splitlines()
    names = [line.split()[0] for line in rows if not line.startswith(" ")]
    assert {"success", "hang", "pending-long", "noisy-login"} <= set(names)
    assert len(names) >= 16
    assert all(line.endswith("nothing lost") for line in rows if not line.startswith(" "))
    assert re.fullmatch(rf"{re.escape(str(BATCH))}: {len(names)} scenarios in \d+ s: each ended as it has to, .*", end)
    assert [line for line in rows if len(line) > 80 and " " in line.strip()] == []


def test_an_interrupt_reaches_the_scripts_and_nothing_is_left(tmp_path: Path) -> None:
    with start(tmp_path, "rehearse", str(MINIMAL), "--scenario", "timeout") as running:
        assert running.stderr is not None
        said = ""
        while "submitted" not in said:
            line = running.stderr.readline()
            assert line, said
            said += line
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, f"{MINIMAL}: interrupted while rehearsing timeout\n")
    assert list((tmp_path / "home").iterdir()) == list((tmp_path / "tmp").iterdir()) == []


def test_a_bundle_that_is_rehearsed_as_it_is_made_says_so_in_its_readme(tmp_path: Path) -> None:
    spec = str(ROOT / "generated" / "minimal" / "spec.json")
    code, out, said = gen(tmp_path, "bundle", spec, "-o", "out", "--rehearse")
    assert code == 0, said
    assert out.endswith("out: rehearsed: exit code 0, PASSED\n")
    section = (tmp_path / "out" / "README.md").read_text().partition("## Rehearsed")[2].partition("\n## ")[0]
    assert "| sync.sh | git push, ssh | git clone, git fetch, git checkout |  |" in section
    assert "| submit.sh | ssh | squeue, sbatch | srun |" in section
    sums = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "out", check=False)
    assert sums.returncode == 0
    assert re.findall(r"^\| (\S+) \|", section, re.MULTILINE)[2:] == [
        f"{step}.sh" for step in ("preflight", "sync", "submit", "monitor", "collect")
    ]
    again, _, _ = gen(tmp_path, "bundle", spec, "-o", "out")
    assert again == 0, "a README of ours was taken for an edited one"


def test_the_login_of_a_person_is_told_as_such(tmp_path: Path) -> None:
    code, out, said = gen(tmp_path, "rehearse", str(BATCH), "--transcript", "-")
    assert code == 0, said
    login = out.partition("\nyour login:\n")[2].partition("\n\n")[0]
    assert re.fullmatch(r" +0:00  here +ssh -fNM .*", login)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere"),
        ([str(MINIMAL), "--scenario", "flood"], "--scenario flood: there is none of this name. There are:"),
        ([str(MINIMAL), "--scenario", "build-failure"], "the scenario build-failure means nothing for"),
        ([str(MINIMAL), "--all", "--transcript", "x"], "give --scenario and --transcript without it"),
        ([str(MINIMAL), "--keep", "a b"], "a b: a rehearsal needs a folder whose path has letters"),
        ([str(MINIMAL), "--keep", "."], "is not empty; give a folder that is, or a new one"),
    ],
)
def test_what_cannot_be_done_is_told_by_what_was_given(tmp_path: Path, arguments: list[str], words: str) -> None:
    code, out, said = gen(tmp_path, "rehearse", *arguments)
    assert (code, out) == (2, "")
    assert words in said
    assert "Traceback" not in said


def test_the_scenarios_are_listed(tmp_path: Path) -> None:
    code, out, _ = gen(tmp_path, "rehearse", str(MINIMAL), "--scenario", "list")
    assert code == 0
    assert "mfa-needed               the site asks for a second factor" in out
