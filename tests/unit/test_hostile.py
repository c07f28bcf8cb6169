"""Every free text of a spec is tried with hostile ones, and refuses what it cannot hold with nothing written."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.cli import main
from tests.hostile import ANNOTATIONS, FIELDS, is_array, put

# Each of these texts stands on lines of its own, or in none of a script's: only what nothing can hold is refused there.
HOLD_LINES = {
    *("command", "test_cmd", "bench_cmd", "eval_cmd", "custom_cmd", "build_command", "env", "custom_env"),
    *("execution_scenario", "persistent_mode", "skip_install", "checkpoint_path", "llm_models_root"),
    *("perf_config_yaml", "slurm_env.user"),
    *(f"slurm_env.partitions[0].{name}" for name in ("name", "state", "time_limit", "nodes", "arch", "gres")),
}


def test_every_field_that_takes_a_free_text_is_tried_with_hostile_ones() -> None:
    assert sorted(ANNOTATIONS) == sorted(FIELDS), "give the field a row in tests/hostile.py"


def bundle(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    """Run `gen bundle` of a spec with this text in this field; give its exit code."""
    spec: dict[str, Any] = {"ssh_host": "login", "remote_cwd": "/runs", "account": "a", "partition": "p"}
    spec |= {"repo_root": ".", "repo_url": "https://h/a.git", "command": "true", "recipe": "single"}
    if FIELDS[name].group == "command":
        del spec["command"]
    put(spec, name, {"A": text} if FIELDS[name].group == "env" else [text] if is_array(ANNOTATIONS[name]) else text)
    (folder / "job_spec.json").write_text(json.dumps(spec))
    monkeypatch.setattr(sys, "argv", ["gen", "bundle", str(folder / "job_spec.json"), "-o", str(folder / "out")])
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("GEN_CATALOG", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.req("R1", "R58")
@pytest.mark.parametrize("name", sorted(FIELDS))
def test_what_a_field_cannot_hold_is_refused_by_field_value_and_reason_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for odd in ("\0", "\ud800", *(() if name in HOLD_LINES else ("\n", "\x1b", "\u2028"))):
        assert bundle(tmp_path, name, f"/odd{odd}text", monkeypatch) == 2, repr(odd)
        shown = capsys.readouterr().err
        problem = next(line for line in shown.splitlines() if f": {name}" in line)
        assert re.match(rf"job_spec\.json:1: {re.escape(name)}[:.\[].*; ", problem), problem
        assert "odd" in problem or FIELDS[name].group == "env"
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", sorted(HOLD_LINES - {"slurm_env.user"}))
def test_a_text_of_several_lines_is_taken_where_there_may_be_some(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bundle(tmp_path, name, "two\nlines\twith\r\x1b\u2028\u202e'$(id)`id`", monkeypatch) in (0, None)
    assert (tmp_path / "out" / "run_all.sh").exists()
