"""Measures single commands: gen against the bare import of its libraries, lint against gen bundle.

The commands take turns, and ratios are of runs in the same round: what else the machine does meanwhile slows down both.
That is why this is no pyperf, which runs one command many times and then the next one.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.table import Options, Part, Verdict
from tests.project import git

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
GEN = str(BIN / "gen")
LINT_ROUNDS = 5

BARE = "python -c pass"
IMPORT = "import typer, pydantic, jinja2"
HELP, VALIDATE, BUNDLE, LINT = "gen --help", "gen validate", "gen bundle --no-lint", "gen bundle --lint"

# The least that programs on these libraries do: typer and pydantic load most of themselves when they are first used.
LEAST = """
import typer, pydantic, jinja2
app = typer.Typer()
app.command()(lambda spec: None)
app(["spec"], standalone_mode=False)
class Model(pydantic.BaseModel):
    field: int | None = None
Model.model_validate({"field": 1})
"""
LEAST_RENDERED = LEAST + 'jinja2.Environment().from_string("{{ hole }}").render(hole=1)'


def make_example(folder: Path) -> Path:
    """A clone with an origin, and the spec of the bundle trtllm-2x8 for it."""
    clone = folder / "engine"
    clone.mkdir()
    git(clone, "init", "--quiet")
    git(clone, "remote", "add", "origin", "git@git.example.org:hpcuser/engine.git")
    values = json.loads((ROOT / "generated" / "trtllm-2x8" / "spec.json").read_text())
    del values["repo_url"]
    (folder / "job_spec.json").write_text(json.dumps({**values, "repo_root": str(clone)}))
    return folder / "job_spec.json"


def time_rounds(
    commands: Mapping[str, Sequence[str]], rounds: int, folder: Path, *, warm_up: int = 0
) -> dict[str, list[float]]:
    """Run each command once a round, after rounds that do not count; give its times in seconds."""
    # Compiled modules are kept, as they are for whoever has installed gen; no catalog of yours comes in.
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(-warm_up, rounds):
        for name, command in commands.items():
            shutil.rmtree(folder / "out", ignore_errors=True)
            began = time.perf_counter()
            done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
            took = time.perf_counter() - began
            if done.returncode:
                raise SystemExit(f"bench: {name} ended with {done.returncode}: {done.stderr.strip()}")
            if number >= 0:
                times[name].append(took)
    return times


def ratio(of: Sequence[float], to: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(one / other for one, other in zip(of, to, strict=True))


def measure_start(options: Options) -> Part:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = [GEN, "bundle", str(make_example(folder)), "-o"]
        times = time_rounds(list_starts(bundle), options.rounds, folder, warm_up=1)
        subprocess.run([*bundle, "linted"], cwd=folder, capture_output=True, check=True)
        lint_times = time_rounds(list_lints(bundle, folder / "linted"), min(options.rounds, LINT_ROUNDS), folder)
    verdicts = [
        Verdict(f"{name} / import", ratio(times[name], times[IMPORT]), limit)
        for name, limit in ((HELP, 1.3), (VALIDATE, 1.3), (BUNDLE, 1.6))
    ]
    return Part(
        title=f"starting gen; medians of {options.rounds} rounds, in which all take turns",
        headings=("", "ms", "/ python", "/ import"),
        rows=[
            *(
                (name, milliseconds(took), f"{ratio(took, times[BARE]):.1f}", f"{ratio(took, times[IMPORT]):.2f}")
                for name, took in times.items()
            ),
            *((name, milliseconds(took)) for name, took in lint_times.items() if name != BUNDLE),
        ],
        verdicts=[*verdicts, Verdict(f"{LINT} / {BUNDLE}", ratio(lint_times[LINT], lint_times[BUNDLE]), 2)],
    )


def list_starts(bundle: Sequence[str]) -> dict[str, Sequence[str]]:
    return {
        BARE: [sys.executable, "-c", "pass"],
        IMPORT: [sys.executable, "-c", IMPORT],
        "the same, with 1 argument and 1 field": [sys.executable, "-c", LEAST],
        "the same, and 1 hole of a template": [sys.executable, "-c", LEAST_RENDERED],
        HELP: [GEN, "--help"],
        VALIDATE: [GEN, "validate", bundle[2]],
        BUNDLE: [*bundle, "out", "--no-lint"],
    }


def list_lints(bundle: Sequence[str], out: Path) -> dict[str, Sequence[str]]:
    scripts = [str(path.relative_to(out)) for path in out.rglob("*") if path.suffix in (".sh", ".slurm")]
    shellcheck = [str(BIN / "shellcheck"), "-S", "style", "-x", *sorted(scripts)]
    return {
        BUNDLE: [*bundle, "out", "--no-lint"],
        LINT: [*bundle, "out", "--lint"],
        f"shellcheck alone, over its {len(scripts)} scripts": ["sh", "-c", 'cd linted && "$@"', "sh", *shellcheck],
    }


def milliseconds(times: Sequence[float]) -> str:
    return f"{statistics.median(times) * 1000:.0f}"
