"""Says what each variable of a bundle's scripts has to hold: by the plan, and by the value in the spec itself."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from slurm_bundle.plan import Plan
from tests.hostile import FIELDS
from tests.sourcing import HOME

Variables = Mapping[str, list[str]]


def expect_variables(plan: Plan, path: str) -> Variables:
    """What a script that holds values has to make, by the plan."""
    return {"config.sh": expect_config, "recipes/job.slurm": expect_job, "build.slurm": expect_build}[path](plan)


def expect_config(plan: Plan) -> Variables:
    return {
        setting.name: list(setting.value) if isinstance(setting.value, tuple) else [str(setting.value)]
        for setting in plan.settings
    }


def expect_job(plan: Plan) -> Variables:
    holes, features = plan.holes, plan.features
    found = {
        "SCRIPTS_DIR": at_home(holes["scripts_dir"]),
        "REPO_DIR": at_home(holes["remote_repo_path"]),
        "WORK_DIR": at_home(holes["remote_work_dir"]),
        "TASKS": str(holes["tasks"]),
        "TASKS_PER_NODE": str(holes["tasks_per_node"]),
        "PYTHONUNBUFFERED": "1",
        **dict(holes["environment"]),
    }
    if "launcher" in features:
        found["PROCESSES_PER_NODE"] = str(holes["processes_per_node"])
    if "mpi" in features:
        found["MPI"] = holes["mpi_plugin"]
    if "network" in features:
        found["NETWORK"] = holes["network_option"]
    if "clocks" in features:
        found["GPU_CLOCKS"] = holes["gpu_clocks"]
    if "container" in features:
        found["CONTAINER_IMAGE"] = at_home(holes["enroot_image"])
        found["CONTAINER_MOUNTS"] = ",".join(map(mount_at_home, holes["container_mounts"]))
        found["CONTAINER_ENV"] = holes["container_env"]
    return {name: [value] for name, value in found.items()}


def expect_build(plan: Plan) -> Variables:
    if "container" not in plan.features:
        return {}
    return {"MOUNTS": [",".join(map(mount_at_home, plan.holes["mounts"]))]}


def at_home(path: str) -> str:
    return HOME + path[1:] if path == "~" or path.startswith("~/") else path


def mount_at_home(mount: str) -> str:
    return ":".join(map(at_home, mount.split(":")))


def check_arrived(name: str, value: Any, plan: Plan, folder: Path, came: Mapping[str, Variables]) -> None:
    """Compare a value of the spec with the place where it has to be in the end; `folder` is the spec's."""
    where, _, what = FIELDS[name].arrives.partition(" ")
    config, job = came["config.sh"], came.get("recipes/job.slurm")
    wanted = value if isinstance(value, list) else [value]
    options = config.get("JOB_OPTIONS", list(plan.holes["job_options"]))
    if where == "config":
        assert config[what][: len(wanted)] == wanted, name
    elif where == "option":
        assert f"{what}={value}" in options, name
    elif where == "options":
        assert options[-len(wanted) :] == wanted
    elif where == "extra_files":
        assert config["EXTRA_FILES"][: len(wanted)] == [str(folder / Path(file).expanduser()) for file in wanted]
    elif where == "custom_script":
        assert config["EXTRA_FILES"][-1] == str(folder / Path(value).expanduser())
    elif where == "repo_root":
        assert config["REPO_ROOT"] == [os.path.realpath(folder / Path(value).expanduser())]
    elif where == "work_dir":
        assert config["REMOTE_WORK"] == [f"{config['REMOTE_REPO'][0]}/work_dirs/{PurePosixPath(value).name}"]
    elif where == "environment" and job is None:
        assert config["JOB_ENVIRONMENT"] == [f"{variable}={text}" for variable, text in pairs_of(value).items()]
    elif where == "environment" and job is not None:
        assert {variable: job[variable] for variable in pairs_of(value)} == {k: [v] for k, v in pairs_of(value).items()}
    elif where == "job" and job is not None:
        assert job[what] == [value]
    elif where == "home" and job is not None:
        assert job[what] == [at_home(value)]
    elif where == "mounts" and job is not None:
        assert job["CONTAINER_MOUNTS"][0].startswith(",".join(map(mount_at_home, wanted)))


def pairs_of(value: Any) -> dict[str, str]:
    """The variables of an environment, in whichever form it was written."""
    if isinstance(value, dict):
        return value
    words = shlex.split(value) if isinstance(value, str) else value
    return dict(word.split("=", 1) for word in words)
