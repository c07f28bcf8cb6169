"""Turns what the spec, the catalog and this machine say into the value of each field: the rules that decide something.

Sources and their order are in resolving.py; the formulas are those of the fields of the job spec.
"""

import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from slurm_bundle.fields import Spec
from slurm_bundle.folders import check_log_folder, check_mountable, name_of_repository
from slurm_bundle.resolving import Resolution
from slurm_bundle.texts import make_job_name
from slurm_bundle.walltime import format_walltime, parse_duration, parse_walltime

# The -a value of build_wheel.py for each GPU, as the procedure has it.
ARCHITECTURES = {
    "B200": "100-real",
    "GB200": "100-real",
    "B300": "100-real",
    "GB300": "100-real",
    "H100": "90-real",
    "H200": "90-real",
    "L40S": "89-real",
    "A100": "80-real",
}
RECIPES_OF_MANY = (
    "mpi (a rank a GPU), distributed (a task a GPU), launcher (torchrun on each node) or batch (your own script)"
)


@dataclass(frozen=True)
class Surroundings:
    """What the machine that makes the bundle knows: of the repository, its user, the files that the spec names."""

    user: str
    repo_root: Path | None
    origin_url: str | None
    git_says: str = ""
    batch_script: str | None = None


def resolve_fields(r: Resolution, surroundings: Surroundings) -> None:
    """Resolve every field, in an order in which each finds those that it is derived from."""
    resolve_connection(r)
    resolve_repository(r, surroundings)
    resolve_recipe(r)
    resolve_size(r)
    resolve_limits(r)
    resolve_container(r)
    resolve_paths(r, surroundings)
    resolve_build(r)


def resolve_connection(r: Resolution) -> None:
    r.take("slurm_user")
    pattern = getattr(r.cluster, "ssh_host_pattern", None)

    def fill_pattern() -> str | None:
        if pattern is None or r.cluster is None or ("{slurm_user}" in pattern and not r["slurm_user"]):
            return None
        return str(pattern).format(slurm_user=r["slurm_user"], cluster_name=r.cluster.name)

    if not r.take("ssh_host", (fill_pattern, "derived: ssh_host_pattern of the catalog")):
        r.missing("ssh_host", "or ssh_host_pattern for the cluster in the catalog")
    r.take("mfa_style")
    if r["mfa_style"] is not False:
        state = "true" if r["mfa_style"] else "not known"
        r.remark(
            "mfa_style",
            f"{state}: the bundle uses an open connection of yours where there is one, and else says how to open it",
        )
    r.take("ssh_options")
    r.take("default_user_root_dir")
    r.take("remote_cwd", (lambda: r["default_user_root_dir"] or None, "derived: default_user_root_dir"))
    if not r["remote_cwd"]:
        r.missing("remote_cwd", "or default_user_root_dir for the cluster in the catalog")
    for name in ("account", "partition"):
        if not r.take(name):
            r.missing(name, f"or {name} for the cluster in the catalog")
    r.take("remote_init")


def resolve_repository(r: Resolution, surroundings: Surroundings) -> None:
    root = surroundings.repo_root
    if root is None:
        r.missing("repo_root", "which is the folder of your clone")
        r.put("repo_root", None, "not given")
    else:
        r.put(
            "repo_root",
            str(root),
            "spec: repo_root, made absolute" if str(root) != r.read.spec.repo_root else "spec: repo_root",
        )
    r.take("repo_url", (lambda: surroundings.origin_url, "git: the URL of origin in repo_root"))
    if not r["repo_url"]:
        said = f" (git says: {surroundings.git_says})" if surroundings.git_says else ""
        r.missing("repo_url", f"or give repo_root a clone whose origin is set{said}")


def resolve_recipe(r: Resolution) -> None:
    spec = r.read.spec
    nodes_given, _given = r.look("node_count")
    r.take(
        "node_count",
        (lambda: count_nodes(spec), "derived: total_required_devices / required_devices_per_node, rounded up"),
        (lambda: 1, "default"),
    )
    r.take(
        "recipe",
        (lambda: "batch" if spec.script_path else None, "derived: script_path is given"),
        (lambda: "single" if r["node_count"] == 1 else None, "derived: one node"),
    )
    if r["recipe"] is None:
        r.missing("recipe", f"as node_count is {r['node_count']}: {RECIPES_OF_MANY}")
    elif r["recipe"] == "single" and nodes_given and nodes_given > 1:
        r.wrong(
            "node_count",
            f"{nodes_given} is not allowed with the recipe single, which is one task on one node; "
            f"give 1, or one of {RECIPES_OF_MANY}",
        )
    if r["recipe"] == "batch":
        r.put("command", None, "the batch script")
        if not spec.script_path:
            r.missing("script_path", "for the recipe batch")
    elif not r.take("command", (lambda: custom_script_command(spec), "derived: custom_script")):
        r.missing("command", "or one of test_cmd, bench_cmd, eval_cmd, custom_cmd, custom_script, script_path")
    r.take("script_path")
    r.take(
        "script_name",
        (lambda: PurePosixPath(spec.script_path).name if spec.script_path else None, "derived: script_path"),
    )


def count_nodes(spec: Spec) -> int | None:
    per_node = spec.required_devices_per_node or spec.required_devices
    if not spec.total_required_devices or not per_node:
        return None
    return max(1, math.ceil(spec.total_required_devices / per_node))


def custom_script_command(spec: Spec) -> str | None:
    """The command that runs custom_script, which is sent along into the work folder."""
    return f'bash "$WORK_DIR"/{shlex.quote(Path(spec.custom_script).name)}' if spec.custom_script else None


def resolve_size(r: Resolution) -> None:
    r.take(
        "gpus_per_node",
        (lambda: partition_gpus(r), "spec: slurm_env.partitions, which says that GPUs must be asked for"),
    )
    r.take("tasks_per_node", (lambda: 1, "default"))
    r.put("processes_per_node", r["tasks_per_node"], r.origin("tasks_per_node"))
    if r["recipe"] in ("single", "launcher"):
        r.put("tasks_per_node", 1, f"derived: the recipe {r['recipe']} has one task a node")
    for name in (
        "cpus_per_task",
        "mem",
        "exclusive",
        "qos",
        "reservation",
        "constraint",
        "network",
        "comment",
        "gpu_clocks",
        "sbatch_options",
        "device_type",
    ):
        r.take(name)
    r.take("mpi_plugin", (lambda: "pmix" if r["recipe"] == "mpi" else None, "default"))


def partition_gpus(r: Resolution) -> int | None:
    """The GPUs of a node, where what was found on the cluster says that this partition takes no job without asking."""
    env = r.read.spec.slurm_env
    known = (env.partitions if env else None) or ()
    asking = [partition for partition in known if partition.name == r["partition"] and partition.requires_gres]
    return asking[0].gpus_per_node if asking else None


def resolve_limits(r: Resolution) -> None:
    r.take("time_limit", (lambda: "02:00:00", "default"))
    r.put("time_limit", format_walltime(parse_walltime(r["time_limit"])), r.origin("time_limit"))
    r.take("build_time_limit", (lambda: "02:00:00", "default"))
    r.put("build_time_limit", format_walltime(parse_walltime(r["build_time_limit"])), r.origin("build_time_limit"))
    r.take("monitor_timeout", (lambda: 3600, "default"))
    timeout = r["monitor_timeout"]
    r.put(
        "monitor_timeout", timeout if isinstance(timeout, int) else parse_duration(timeout), r.origin("monitor_timeout")
    )
    r.take("poll_seconds", (lambda: 30, "default"))
    floor = getattr(r.cluster, "min_poll_seconds", None) or 10
    if r["poll_seconds"] < floor:
        r.wrong(
            "poll_seconds",
            f"{r['poll_seconds']} is not allowed; give {floor} or more, the least that the catalog allows",
        )
    r.take("hang_patterns", (lambda: ("hang detected",), "default"))
    r.take("success_patterns")
    r.take("failure_patterns")
    r.take("log_file_pattern", (lambda: "slurm-%j.out", "default"))
    if re.search("%[aNnt]", r["log_file_pattern"].replace("%%", "")):
        r.wrong(
            "log_file_pattern",
            f"{r['log_file_pattern']} has a part that only the nodes know; use %j, %A, %x, %u and %% only",
        )


def resolve_container(r: Resolution) -> None:
    r.take("container_image")
    image = r["container_image"]
    r.take(
        "container_runtime",
        (lambda: "pyxis" if image else "none", "derived: container_image is " + ("given" if image else "not given")),
    )
    r.take("mounts")
    if not image and r["container_runtime"] == "pyxis":
        r.missing("container_image", "for the container runtime pyxis")
    # Those of the site, from the catalog or slurm_env, are there for the jobs that have a container.
    own = r.origin("mounts") in ("spec: mounts", "spec: container_mounts")
    if own and r["mounts"] and r["container_runtime"] == "none":
        r.wrong("mounts", "mounts need a container; give container_image, or take mounts out")
    r.take("container_writable")
    r.take("container_mount_home")
    if r["recipe"] == "batch" and image:
        r.remark(
            "container_image",
            "your batch script says itself which container it runs in; the image is used for the build only",
        )


def resolve_paths(r: Resolution, surroundings: Surroundings) -> None:
    spec = r.read.spec
    root = r["default_user_root_dir"] or r["remote_cwd"] or ""
    r.take("model_name")
    detail = r["model_name"] or spec.workflow_type or r["recipe"]
    named_after = "model_name" if r["model_name"] else "workflow_type" if spec.workflow_type else "recipe"
    formula = f"{r['account']}.{detail}"
    name = make_job_name(formula)
    changed = "" if name == formula else ", with _ for what a job name cannot hold"
    r.take("job_name", (lambda: name, f"derived: account.{named_after}{changed}"))
    repo_name = name_of_repository(r["repo_url"] or "")
    r.take(
        "remote_repo_path",
        (
            lambda: f"{root}/{repo_name}",
            "derived: default_user_root_dir/<name of repo_url>"
            if r["default_user_root_dir"]
            else "derived: remote_cwd/<name of repo_url>",
        ),
    )
    r.take("work_dir")
    if r["work_dir"]:
        name, said = PurePosixPath(r["work_dir"]).name, "<name of work_dir>"
    else:
        name, said = re.sub("[^A-Za-z0-9._-]", "_", r["job_name"] or ""), "<job_name>, as no work_dir is given"
    r.take(
        "remote_work_dir",
        (lambda: f"{r['remote_repo_path']}/work_dirs/{name}", f"derived: remote_repo_path/work_dirs/{said}"),
    )
    check_mountable(r)
    check_log_folder(r)
    r.take("refresh_paths", (lambda: ("cpp/",), "default"))
    r.take("extra_files")
    r.take("environment")
    r.take("pass_env")
    user = r["slurm_user"] or (r["ssh_host"] or "").rpartition("@")[0] or surroundings.user
    model = r["model_name"] or Path(r["repo_root"] or "").name
    r.put(
        "temp_branch",
        f"{ref_safe(user)}_{ref_safe(model)}",
        "derived: slurm_user, model_name; the time is added at the run",
    )


def ref_safe(text: str) -> str:
    """Make text safe for a git ref, as the procedure does: letters, digits, _ and - only, and not too long."""
    return re.sub("[^A-Za-z0-9_-]", "_", text)[:100]


def resolve_build(r: Resolution) -> None:
    r.take("build_project", (lambda: True, "default"))
    r.take("build_command")
    if not r["build_project"]:
        return
    device = str(r["device_type"] or "").upper()
    arch = ARCHITECTURES.get(device, "100-real")
    if r["build_command"]:
        r.put("build_arguments", (), "build_command takes none")
    else:
        origin = f"derived: device_type {device}" if device in ARCHITECTURES else "default, as device_type is not known"
        r.put("build_arguments", ("-a", arch, "--nvtx"), origin)
