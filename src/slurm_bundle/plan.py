"""Turns a spec and a catalog into a plan: every value resolved, each knowing where it came from.

spec + catalog --resolve_plan--> Plan --render_bundle--> files. All problems are gathered before it stops.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_bundle import __version__
from slurm_bundle.catalog import Catalog, choose_cluster
from slurm_bundle.image import rewrite_for_enroot
from slurm_bundle.problems import ProblemsError, SpecError
from slurm_bundle.resolving import Resolution, Value
from slurm_bundle.rules import Surroundings, resolve_fields
from slurm_bundle.settings import Setting, check_names, list_settings
from slurm_bundle.spec import ReadSpec
from slurm_bundle.submission import build_options, job_options, log_names


@dataclass(frozen=True)
class Plan:
    """A bundle before it is text.

    `values` are the resolved fields, in order; `settings` are the lines of config.sh; `features` says which optional
    parts there are; `holes` are the further values that templates use; `texts` are the user's own, by file name.
    """

    version: str
    spec_name: str
    values: tuple[Value, ...]
    settings: tuple[Setting, ...]
    features: frozenset[str]
    holes: Mapping[str, Any]
    texts: Mapping[str, str]
    remarks: tuple[Any, ...]

    def __getitem__(self, name: str) -> Any:
        return next(value.value for value in self.values if value.name == name)


def resolve_plan(read: ReadSpec, catalog: Catalog, surroundings: Surroundings) -> Plan:
    """Resolve every value. Raises SpecError with all problems: missing fields (resolving.Missing) and wrong ones."""
    try:
        cluster = choose_cluster(catalog, read.spec, name=read.name, lines=read.lines)
    except ProblemsError as error:
        cluster, found = None, list(error.problems)
    else:
        found = []
    resolution = Resolution(read, cluster, problems=found, remarks=list(read.warnings))
    resolve_fields(resolution, surroundings)
    if resolution.problems:
        raise SpecError(resolution.problems)
    plan = make_plan(resolution, surroundings)
    check_names(resolution, plan.settings)
    if resolution.problems:
        raise SpecError(resolution.problems)
    return plan


def make_plan(r: Resolution, surroundings: Surroundings) -> Plan:
    """Put together what the templates need. Here every value is there and right."""
    container = r["container_runtime"] == "pyxis"
    recipe, build = r["recipe"], bool(r["build_project"])
    environment = r["environment"] or ()
    r.put(
        "enroot_image",
        rewrite_for_enroot(r["container_image"]) if r["container_image"] else "",
        "derived: container_image, in the form that enroot reads",
    )
    r.put(
        "container_mounts",
        tuple(r["mounts"] or ()) if container else (),
        "derived: mounts; the job adds remote_repo_path and remote_work_dir, which it cannot do without",
    )
    tasks = r["tasks_per_node"] * (1 if recipe == "single" else r["node_count"])
    out_log, err_log = log_names(r["log_file_pattern"])
    texts = user_texts(r, surroundings)
    present = {
        recipe: True,
        "container": container,
        "build": build,
        "build_command": build and r["build_command"],
        "extra_files": extra_files(r),
        "pass_env": r["pass_env"],
        "remote_init": r["remote_init"],
        "create_remote_cwd": r.read.spec.create_remote_cwd,
        "gpus": r["gpus_per_node"],
        "cpus": r["cpus_per_task"],
        "network": r["network"],
        "clocks": r["gpu_clocks"],
        "requeue": r["requeue"],
        "mpi": recipe == "mpi",
        "rendezvous": recipe in ("distributed", "launcher"),
        "writable": r["container_writable"],
        "mount_home": r["container_mount_home"],
        "mfa": r["mfa_style"] is not False,
        "mfa_unknown": r["mfa_style"] is None,
    }
    features = frozenset(name for name, there in present.items() if there)
    holes: dict[str, Any] = {
        "version": __version__,
        "spec_name": r.read.name,
        "notes": tuple(map(str, r.remarks)),
        "tasks": tasks,
        "gpus_per_node": r["gpus_per_node"] or 0,
        "cpus_per_task": r["cpus_per_task"] or 0,
        "mpi_plugin": r["mpi_plugin"] or "",
        "network_option": r["network"] or "",
        "gpu_clocks": r["gpu_clocks"] or "",
        "tasks_per_node": r["tasks_per_node"],
        "processes_per_node": r["processes_per_node"],
        "extra_files": extra_files(r),
        "enroot_image": r["enroot_image"],
        "container_mounts": r["container_mounts"],
        "mounts": r["mounts"] or (),
        "container_env": ",".join(
            [*(name for name, _ in environment), *(r["pass_env"] or ()), "WORK_DIR", "PYTHONUNBUFFERED"]
        ),
        "environment": environment,
        "remote_repo_path": r["remote_repo_path"],
        "remote_work_dir": r["remote_work_dir"],
        "out_log": out_log,
        "err_log": err_log,
    }
    bundle_id = identify([[v.name, v.value] for v in r.values.values()], dict(texts), __version__)
    holes["bundle_id"] = r.put("bundle_id", bundle_id, "derived: every value above")
    holes["scripts_dir"] = r.put(
        "scripts_dir", f"{r['remote_work_dir']}/scripts-{bundle_id}", "derived: remote_work_dir, bundle_id"
    )
    holes["job_options"] = job_options(r, tasks=tasks, out_log=out_log, err_log=err_log)
    holes["build_options"] = build_options(r)
    return Plan(
        version=__version__,
        spec_name=r.read.name,
        values=tuple(r.values.values()),
        settings=list_settings(r, holes, features),
        features=features,
        holes=holes,
        texts=texts,
        remarks=tuple(r.remarks),
    )


def identify(*parts: object) -> str:
    """Give 12 hex digits that stand for the parts, so that another spec gets another folder and another record."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


def extra_files(r: Resolution) -> tuple[str, ...]:
    """The local files that go to the work folder, made absolute from the folder of the spec."""
    files = [*(r["extra_files"] or ()), *([r.read.spec.custom_script] if r.read.spec.custom_script else [])]
    return tuple(str(r.read.folder / Path(file).expanduser()) for file in files)


def user_texts(r: Resolution, surroundings: Surroundings) -> dict[str, str]:
    """The user's own text, by the name of the file of the bundle that holds it."""
    texts = {}
    if r["recipe"] == "batch":
        texts[f"recipes/{r['script_name']}"] = surroundings.batch_script or ""
    elif r["recipe"] == "launcher":
        texts["command.sh"] = launcher_command(r["command"])
    else:
        texts["command.sh"] = r["command"]
    if r["build_project"] and r["build_command"]:
        texts["build_command.sh"] = r["build_command"]
    if r["remote_init"]:
        texts["login/init.sh"] = r["remote_init"]
    return texts


def launcher_command(command: str) -> str:
    """The command behind torchrun, whose rendezvous is the first node; a line of its own for each group of options."""
    return (
        'torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node="$PROCESSES_PER_NODE" \\\n'
        '    --node-rank="$SLURM_NODEID" --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" \\\n'
        '    --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" \\\n'
        f"    {command}"
    )
