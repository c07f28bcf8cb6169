"""Turns a plan into the README.md of its bundle: what happens, in order, on which side; how to run, resume and undo."""

import re
from collections.abc import Iterable
from typing import Any, Protocol

from slurm_bundle.plan import Plan
from slurm_bundle.problems import show_text


class Named(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...


def purpose(text: str) -> str:
    """The first sentence of a script's header."""
    found = re.search("^# (.*)", text, re.MULTILINE)
    return found[1] if found else ""


def describe_job(plan: Plan) -> str:
    gpus = f", {plan['gpus_per_node']} GPUs on each" if plan["gpus_per_node"] else ""
    nodes = plan["node_count"]
    where = f"{nodes} node{'s' if nodes != 1 else ''}{gpus}"
    image = (
        f", in the container {code(plan['container_image'])}"
        if "container" in plan.features and "batch" not in plan.features
        else ""
    )
    pays = f"in the partition {show(plan['partition'])} at the cost of {show(plan['account'])}"
    return f"{where}, for at most {plan['time_limit']}, {pays}{image}"


def one_line(value: Any) -> str:
    """A value as text on one line, with what cannot be seen as an escape."""
    if isinstance(value, tuple):
        text = ", ".join("=".join(part) if isinstance(part, tuple) else str(part) for part in value)
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return show_text(text.replace("\n", "\\n").replace("\t", "\\t"))


def show(value: Any) -> str:
    """A value in running text, which Markdown takes for nothing else."""
    return re.sub(r"\\(?=[!-/:-@\[-`{-~])|[|<`*\[]", r"\\\g<0>", one_line(value))


def code(value: Any) -> str:
    """A value as code, in the backticks that it takes; in a table a bar ends the cell even there, unless escaped."""
    text = re.sub(r"(\\*)\|", r"\1\1\|", one_line(value))
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if "`" in text[:1] + text[-1:] else ""
    return f"{fence}{space}{text}{space}{fence}" if text else ""


def list_steps(plan: Plan) -> list[str]:
    build = ["submit_build.sh"] if "build" in plan.features else []
    return ["preflight.sh", "sync.sh", *build, "submit.sh", "monitor.sh", "collect.sh"]


def write_readme(plan: Plan, files: Iterable[Named], rehearsed: str = "") -> str:
    """Give the README.md; it names no value that is not in the plan. `rehearsed` is a section, or empty."""
    texts = {file.path: file.text for file in files}
    command = "your batch script" if "batch" in plan.features else "`command.sh`"
    lines = [
        f"# {show(plan['job_name'])}: a job for {show(plan['ssh_host'])}",
        "",
        f"This folder takes the code in {code(plan['repo_root'])}, as it stands there, to {code(plan['ssh_host'])}"
        + (", builds it on a node" if "build" in plan.features else "")
        + f", runs {command} as a Slurm job, watches it, and reports how it went.",
        "It is plain bash: it needs bash, git, ssh and tar, and no gen and no Python.",
        "",
        "The job: " + describe_job(plan) + ".",
        "",
        "## What happens, in order",
        "",
    ]
    for number, step in enumerate(list_steps(plan), 1):
        lines.append(f"{number}. `{step}`: {purpose(texts[step])}")
        lines += [f"   {line}" for line in on_other_sides(step, plan, texts)]
    lines += [
        "",
        f"`cleanup.sh`, only when you call it: {purpose(texts['cleanup.sh'])}",
        "",
        "## What to read before approving it",
        "",
        *review_list(plan),
        "",
        "Every script begins with what it reads, writes and calls, and how to undo it; `SCRIPT --help` prints that.",
        "",
        *write_notes(plan),
        *rehearsed.splitlines(),
        "## Run, resume, undo",
        "",
        "    ./run_all.sh --dry-run    # say what would be done",
        "    ./run_all.sh              # do it; after an interruption, the same command goes on where it stopped",
        "    ./run_all.sh --from sync  # do it again from a step on",
        "    ./cleanup.sh              # cancel what runs, remove the scripts from the cluster",
        "",
        "State and reports are in `.run/` (or in `$GEN_STATE_DIR`, where this folder is read-only): `report.txt`,",
        "`report.json`, `events.jsonl`. Check that nothing was changed since it was made: `sha256sum -c SHA256SUMS`.",
        "",
        "## Exit codes",
        "",
        "0 passed, 1 job failed, 2 wrong use, 3 preflight failed, 4 log in first, 5 sync failed, 6 build failed,",
        "7 submit failed, 8 time-out, 9 hang detected, 10 out of memory, 11 cancelled, 12 cluster error, 13 cannot",
        "tell (no answer in time; nothing was concluded), 130 interrupted.",
        "",
        "## Values, and where they came from",
        "",
        "| value | is | from |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| {value.name} | {code(value.value)} | {show(value.origin)} |"
        for value in plan.values
        if value.value not in (None, ())
    ]
    return "\n".join(lines) + "\n"


def write_notes(plan: Plan) -> list[str]:
    """What is allowed in the spec and often not meant, as `gen validate` says it, too."""
    if not plan.remarks:
        return []
    return ["## Notes on the spec", "", *(f"- {show(str(remark))}" for remark in plan.remarks), ""]


def review_list(plan: Plan) -> list[str]:
    lines = ["- `config.sh`: every value that the steps use. The scripts themselves hold none."]
    if "batch" in plan.features:
        lines.append(f"- {code('recipes/' + plan['script_name'])}: your own batch script, as it is.")
    else:
        lines += [
            "- `recipes/job.slurm`: what Slurm is asked for, and the values of the job.",
            "- `command.sh`: the command, as the spec has it.",
        ]
    if "build" in plan.features:
        lines.append("- `build.slurm`: what Slurm is asked for to build.")
    return lines


def on_other_sides(step: str, plan: Plan, texts: dict[str, str]) -> list[str]:
    """What a step does on the login node and on the nodes."""
    name = step.removesuffix(".sh")
    login = {"submit_build": "submit", "monitor": "poll"}.get(name, name)
    lines = [f"On the login node, `login/{login}.sh`: {purpose(texts[f'login/{login}.sh'])}"]
    if name == "submit_build":
        lines.append(f"On a node, `build.slurm` and `build.sh`: {purpose(texts['build.slurm'])}")
    if name == "submit":
        script = f"recipes/{plan['script_name']}" if "batch" in plan.features else "recipes/job.slurm"
        lines.append(
            f"On the node{'s' if plan['node_count'] > 1 else ''}, {code(script)}"
            + (": your own." if "batch" in plan.features else f": {purpose(texts[script])}")
        )
    return lines
