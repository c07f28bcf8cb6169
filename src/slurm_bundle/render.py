"""Turns a plan into the text of each file of its bundle: same plan, same version, same bytes.

No clock, no host name, no random value, no environment comes in here.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from slurm_bundle.guide import write_readme
from slurm_bundle.loading import CheckedTemplate, load_template
from slurm_bundle.plan import Plan

# What each file is for: on which side its lines run; "user" marks the user's own text.
ALWAYS = {
    "config.sh": "values",
    "lib.sh": "local",
    "remote.sh": "local",
    "jobs.sh": "local",
    "watch.sh": "local",
    "facts.sh": "local",
    "proof.sh": "local",
    "verdict.sh": "local",
    "run_all.sh": "local",
    "preflight.sh": "local",
    "sync.sh": "local",
    "snapshot.sh": "local",
    "submit.sh": "local",
    "monitor.sh": "local",
    "collect.sh": "local",
    "cleanup.sh": "local",
    "login/lib.sh": "login",
    "login/slurm.sh": "login",
    "login/preflight.sh": "login",
    "login/sync.sh": "login",
    "login/once.sh": "login",
    "login/submit.sh": "login",
    "login/end.sh": "login",
    "login/poll.sh": "login",
    "login/collect.sh": "login",
    "login/cleanup.sh": "login",
}
BUILD = {"submit_build.sh": "local", "build.slurm": "node", "build.sh": "node"}
JOB = {"recipes/job.slurm": "node", "task.sh": "node", "command.sh": "user"}

# The user's own texts that get a header from a template; a batch script stands as it is.
TEXT_HOLES = {
    "command.sh": "command_text",
    "build_command.sh": "build_command_text",
    "login/init.sh": "remote_init_text",
}

SOURCED = (
    *("login/init.sh", "config.sh", "lib.sh", "remote.sh", "snapshot.sh"),
    *("jobs.sh", "watch.sh", "facts.sh", "proof.sh", "verdict.sh"),
)


@dataclass(frozen=True)
class BundleFile:
    """A file of a bundle: its path in the bundle, its text, its mode (0o755 or 0o644) and the side that runs it."""

    path: str
    text: str
    mode: int
    side: str

    @cached_property
    def data(self) -> bytes:
        return self.text.encode()

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@cache
def templates_folder() -> Path:
    """Where the templates are: inside the installed package, or at the top of the project in an editable install."""
    inside = Path(__file__).parent / "templates"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "templates"


class Features(Mapping[str, bool]):
    """Each feature that a template may ask for, by name."""

    NAMES = frozenset(
        (
            *("single", "mpi", "distributed", "launcher", "batch", "rendezvous"),
            *("build", "build_command", "container", "writable", "mount_home"),
            *("extra_files", "pass_env", "remote_init", "create_remote_cwd", "mfa", "mfa_unknown"),
            *("gpus", "cpus", "network", "clocks", "requeue"),
        )
    )

    def __init__(self, present: frozenset[str]) -> None:
        self.present = present

    def __getitem__(self, name: str) -> bool:
        if name not in self.NAMES:
            raise KeyError(name)
        return name in self.present

    def __iter__(self) -> Any:
        return iter(sorted(self.NAMES))

    def __len__(self) -> int:
        return len(self.NAMES)


def list_files(plan: Plan) -> dict[str, str]:
    """The paths of the bundle and their sides, in the order in which a reader should meet them."""
    files = dict(ALWAYS)
    if "build" in plan.features:
        files |= BUILD
    if "extra_files" in plan.features:
        files["login/put.sh"] = "login"
    if "batch" not in plan.features:
        files |= JOB
    return files | dict.fromkeys(plan.texts, "user")


def render_bundle(plan: Plan, rehearsed: str = "") -> tuple[BundleFile, ...]:
    """Render every file, then the manifest and the checksums of what was rendered.

    `rehearsed` is the section of the README.md that tells of a rehearsal.
    """
    texts = {hole: plan.texts.get(of) for of, hole in TEXT_HOLES.items()}
    # Where a feature and a value have the same name, templates mean the feature.
    holes = {**plan.holes, "settings": plan.settings, **texts, **Features(plan.features)}
    names = frozenset(holes)
    files = [render_file(plan, path, side, holes, names) for path, side in list_files(plan).items()]
    files.append(BundleFile("README.md", write_readme(plan, files, rehearsed), 0o644, "text"))
    files.sort(key=lambda file: file.path)
    manifest = BundleFile("MANIFEST.json", write_manifest(plan, files), 0o644, "text")
    sums = "".join(f"{file.sha256}  {file.path}\n" for file in sorted([*files, manifest], key=lambda file: file.path))
    return (*files, manifest, BundleFile("SHA256SUMS", sums, 0o644, "text"))


def render_file(plan: Plan, path: str, side: str, holes: Mapping[str, Any], names: frozenset[str]) -> BundleFile:
    if path not in TEXT_HOLES and path in plan.texts:
        return BundleFile(path, plan.texts[path], 0o755, side)
    template = load_template(templates_folder(), path, names)
    if template.names <= Features.NAMES:
        return render_script(template, side, template.names & plan.features)
    return make_file(path, template.render(holes), side)


@cache
def render_script(template: CheckedTemplate, side: str, features: frozenset[str]) -> BundleFile:
    """Render a script that holds no value, once: for the same features it has the same bytes in every bundle."""
    return make_file(template.path, template.render(Features(features)), side)


def make_file(path: str, text: str, side: str) -> BundleFile:
    runs = side in ("local", "node", "user") and path not in SOURCED
    return BundleFile(path, text, 0o755 if runs else 0o644, side)


def write_manifest(plan: Plan, files: list[BundleFile]) -> str:
    entries = [
        {"path": file.path, "sha256": file.sha256, "mode": f"{file.mode:04o}", "side": file.side} for file in files
    ]
    content = {
        "made_by": f"gen {plan.version}",
        "bundle_id": plan["bundle_id"],
        "spec": plan.spec_name,
        "files": entries,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
