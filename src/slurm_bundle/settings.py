"""Turns resolved values into the settings of config.sh: name, value, meaning, origin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slurm_bundle.resolving import Resolution
from slurm_bundle.walltime import parse_walltime

# How long a watch bears without any answer before it says that it cannot tell, and how long it may wait between looks.
PATIENCE_SECONDS = 600
POLL_SECONDS_MAX = 120
SLOW_END_SECONDS = 300

# What Slurm and pyxis print where a step failed and its exit code is 0, or got lost in a script.
SILENT_FAILURES = (
    "launch failed: Plugin initialization failed",
    "pyxis: failed to export",
    "pyxis: ignoring --container",
)
BATCH_FAILURES = ("srun: error: ", "pyxis: failed to export")


@dataclass(frozen=True)
class Setting:
    """One line of config.sh; `value` is a text, a number or an array of texts."""

    name: str
    value: str | int | tuple[str, ...]
    meaning: str
    origin: str


def list_settings(r: Resolution, holes: Mapping[str, Any], features: frozenset[str]) -> tuple[Setting, ...]:
    """The settings that this bundle needs, in the order in which its steps use them."""
    settings = [
        resolved(r, "SSH_HOST", "ssh_host", "The login node, as ssh takes it"),
        Setting(
            "SSH_OPTIONS",
            ssh_options(r),
            "How ssh is called: never asking, and with a limit to its waiting",
            ssh_origin(r),
        ),
        resolved(r, "REMOTE_CWD", "remote_cwd", "The folder on the cluster that has to be there"),
        Setting("REPO_ROOT", r["repo_root"], "Your clone", r.origin("repo_root")),
        resolved(r, "REPO_URL", "repo_url", "Where the cluster clones and fetches from"),
        resolved(r, "BRANCH_PREFIX", "temp_branch", "How the temporary branch on origin begins"),
        Setting(
            "USER_ROOT",
            r["default_user_root_dir"] or r["remote_cwd"],
            "Your root on the cluster",
            r.origin("default_user_root_dir" if r["default_user_root_dir"] else "remote_cwd"),
        ),
        resolved(r, "REMOTE_REPO", "remote_repo_path", "The clone on the cluster"),
        resolved(r, "REMOTE_WORK", "remote_work_dir", "Where the logs and the results of the job go"),
        resolved(r, "SCRIPTS_DIR", "scripts_dir", "Where the scripts for the nodes go"),
        resolved(
            r, "REFRESH_PATHS", "refresh_paths", "Folders of the clone that are wiped and restored from the snapshot"
        ),
    ]
    if "extra_files" in features:
        settings.append(
            Setting(
                "EXTRA_FILES",
                holes["extra_files"],
                "Local files that go to REMOTE_WORK",
                "spec: extra_files, custom_script",
            )
        )
    if "build" in features:
        settings += [
            resolved(r, "ENROOT_IMAGE", "enroot_image", "The container image of the build"),
            resolved(r, "BUILD_ARGUMENTS", "build_arguments", "What the build command is given"),
            Setting(
                "BUILD_SECONDS",
                (parse_walltime(r["build_time_limit"]) or 86400) + 86400,
                "How long the build is watched: its limit, and a day in the queue",
                "derived: build_time_limit",
            ),
        ]
    if "batch" in features:
        settings += [
            resolved(r, "BATCH_SCRIPT", "script_name", "Your batch script"),
            Setting(
                "JOB_OPTIONS",
                holes["job_options"],
                "What sbatch is told besides; it outweighs the lines of the script",
                "derived: the values of the spec",
            ),
            Setting(
                "JOB_ENVIRONMENT",
                tuple(f"{name}={value}" for name, value in holes["environment"]),
                "What the job has in its environment",
                r.origin("environment"),
            ),
        ]
    if "pass_env" in features:
        settings.append(resolved(r, "PASS_ENV", "pass_env", "Names whose values go from your environment to the job's"))
    settings += [
        resolved(r, "JOB_NAME", "job_name", "The name of the job"),
        Setting("OUT_LOG", holes["out_log"], "The log of the job, in REMOTE_WORK", r.origin("log_file_pattern")),
        Setting("ERR_LOG", holes["err_log"], "Its error log", f"derived: {holes['out_log']}"),
        resolved(r, "HANG_PATTERNS", "hang_patterns", "A job whose log has one of these, in any case, is cancelled"),
        Setting(
            "SUCCESS_PATTERNS",
            r["success_patterns"] or (),
            "One of these has to be in the log of a job that passed",
            r.origin("success_patterns"),
        ),
        Setting("FAILURE_PATTERNS", failure_patterns(r), "None of these may be in it", failure_origin(r)),
        resolved(r, "POLL_SECONDS", "poll_seconds", "Seconds between two looks at a job, at first"),
        Setting(
            "POLL_SECONDS_MAX",
            max(POLL_SECONDS_MAX if r["poll_seconds"] >= 10 else r["poll_seconds"], r["poll_seconds"]),
            "and later",
            "default",
        ),
        resolved(r, "MONITOR_SECONDS", "monitor_timeout", "How long the job is watched"),
        Setting("PATIENCE_SECONDS", PATIENCE_SECONDS, "How long a silent cluster is borne with", "default"),
        Setting("SLOW_END_SECONDS", SLOW_END_SECONDS, "How long a job is COMPLETING before a word is said", "default"),
        resolved(r, "BUNDLE_ID", "bundle_id", "What tells this bundle from others"),
    ]
    return tuple(settings)


def resolved(r: Resolution, name: str, field: str, meaning: str) -> Setting:
    """A setting whose value is that of a field, with its origin."""
    return Setting(name, r[field], meaning, r.origin(field))


def ssh_options(r: Resolution) -> tuple[str, ...]:
    """The options of every ssh call. The user's own come first: ssh takes the first value that it is given.

    ControlPath is the managed socket; where no master listens on it, ssh connects anew (man ssh_config).
    """
    own = tuple(r["ssh_options"] or ())
    options = (
        "BatchMode=yes",
        "ConnectTimeout=5",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=4",
        "ControlMaster=no",
        "ControlPath=~/.ssh/gen-%C",
    )
    return (*own, *(part for option in options for part in ("-o", option)))


def ssh_origin(r: Resolution) -> str:
    return (
        "spec: ssh_options, then gen's own" if r["ssh_options"] else "gen's own; the rest is in your ssh configuration"
    )


def check_names(r: Resolution, settings: tuple[Setting, ...]) -> None:
    """Refuse a variable of the job where something on its way would put another value in its place."""
    environment = [name for name, _ in r["environment"] or ()]
    passed = list(r["pass_env"] or ())
    # Those of a batch script go through the shell on the login node that submits it, as those of pass_env always do.
    submitting = {*passed, *(environment if r["recipe"] == "batch" else ())}
    taken = {setting.name for setting in settings}
    for name in (*environment, *passed):
        field = "pass_env" if name in passed else r.origin("environment").removeprefix("spec: ")
        if name in ("MASTER_ADDR", "MASTER_PORT") and r["recipe"] in ("distributed", "launcher"):
            r.wrong(field, f"{name!r} is set by the recipe {r['recipe']}; leave it out")
        elif name in submitting and (name in taken or (name.islower() and not name.endswith("_proxy"))):
            r.wrong(field, f"{name!r} may be a variable of the script that submits the job; choose another name")


def failure_patterns(r: Resolution) -> tuple[str, ...]:
    """The patterns of the spec, and what an exit code may not tell; an explicit [] is none at all."""
    given = tuple(r["failure_patterns"] or ())
    if not given and r.origin("failure_patterns").startswith("spec"):
        return ()
    return (*given, *(BATCH_FAILURES if r["recipe"] == "batch" else SILENT_FAILURES))


def failure_origin(r: Resolution) -> str:
    origin = r.origin("failure_patterns")
    if r["failure_patterns"]:
        return f"{origin}, then what Slurm prints of a step that failed"
    return origin if origin.startswith("spec") else "default: what Slurm prints of a step that failed"
