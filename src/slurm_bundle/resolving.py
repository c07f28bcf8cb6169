"""Turns spec and catalog into values that each know where they came from.

The first source that has a value wins. Problems and remarks are gathered, so that a user sees all of them at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slurm_bundle.catalog import Cluster
from slurm_bundle.problems import Problem, place_of
from slurm_bundle.spec import ReadSpec


@dataclass(frozen=True)
class Value:
    """A resolved field: its name in the spec, its value, and its origin (`spec: ...`, `derived: ...`, `default`)."""

    name: str
    value: Any
    origin: str


@dataclass(frozen=True)
class Missing(Problem):
    """A required field that nobody gave; `field` is its name in the spec, so that it can be asked for."""

    field: str = ""


# Where a field is looked for, in order. A dot leads into an object of the spec; `catalog.` into the cluster's entry.
SOURCES: Mapping[str, tuple[str, ...]] = {
    "ssh_host": ("ssh_host", "slurm_env.ssh_host"),
    "slurm_user": ("slurm_user", "slurm_env.slurm_user"),
    "mfa_style": ("mfa_style", "slurm_env.mfa_style", "catalog.mfa_style"),
    "remote_cwd": ("remote_cwd", "slurm_env.remote_cwd"),
    "default_user_root_dir": (
        "default_user_root_dir",
        "slurm_env.default_user_root_dir",
        "catalog.default_user_root_dir",
    ),
    "account": ("account", "slurm_params.account", "slurm_env.default_account", "catalog.account"),
    "partition": ("partition", "slurm_params.partition", "slurm_env.default_partition", "catalog.partition"),
    "node_count": ("node_count", "slurm_params.nodes"),
    "gpus_per_node": ("gpus_per_node", "slurm_params.gpus_per_node", "catalog.gpus_per_node"),
    "tasks_per_node": (
        "required_devices_per_node",
        "required_devices",
        "gpus_per_node",
        "slurm_params.gpus_per_node",
        "catalog.gpus_per_node",
    ),
    "time_limit": ("time_limit", "slurm_params.time_limit"),
    "monitor_timeout": ("monitor_timeout_seconds", "monitor_timeout"),
    "container_image": ("container_image", "docker_image"),
    "mounts": ("mounts", "container_mounts", "slurm_env.mounts", "catalog.mounts"),
    "device_type": ("device_type", "slurm_env.device_type", "catalog.device_type"),
    "work_dir": ("work_dir", "local_work_dir"),
    "mpi_plugin": ("slurm_params.mpi_plugin", "catalog.mpi"),
    "environment": ("env", "custom_env"),
    "network": ("network", "catalog.network"),
    "constraint": ("constraint", "catalog.constraint"),
    "comment": ("comment", "catalog.comment"),
    "gpu_clocks": ("gpu_clocks", "catalog.gpu_clocks"),
    "remote_init": ("remote_init", "catalog.remote_init"),
    "container_runtime": ("container_runtime", "catalog.container_runtime"),
    "command": ("command", "test_cmd", "bench_cmd", "eval_cmd", "custom_cmd"),
}


# Where null in the spec is an answer: none, whatever the catalog or what was found on the cluster says. Elsewhere it is
# the same as a field that is absent: programs write it for what they do not know.
NULL_ANSWERS = frozenset(
    {"gpus_per_node", "mfa_style", "default_user_root_dir", "device_type", "remote_init"}
    | {"constraint", "network", "comment", "gpu_clocks"}
)


@dataclass
class Resolution:
    """What has been resolved so far, in the order of resolving; problems and remarks beside it."""

    read: ReadSpec
    cluster: Cluster | None
    values: dict[str, Value] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def origin(self, name: str) -> str:
        return self.values[name].origin

    def put(self, name: str, value: Any, origin: str) -> Any:
        self.values[name] = Value(name, value, origin)
        return value

    def take(self, name: str, *others: tuple[Callable[[], Any], str]) -> Any:
        """Resolve a field from its sources, else from the first of the others (function, origin) that gives one.

        An explicit [] in the spec is an answer, too, and so is null for NULL_ANSWERS. None when nobody has it.
        """
        for source in SOURCES.get(name, (name,)):
            value, given = self.look(source)
            if value is not None and (value != () or given):
                where = (
                    f"catalog: {source.removeprefix('catalog.')}"
                    if source.startswith("catalog.")
                    else f"spec: {source}"
                )
                return self.put(name, value, where)
            if given and name in NULL_ANSWERS:
                return self.put(name, None, f"spec: {source} is null")
        for compute, origin in others:
            value = compute()
            if value is not None:
                return self.put(name, value, origin)
        return self.put(name, None, "not given")

    def look(self, source: str) -> tuple[Any, bool]:
        """Give the value at a dotted source, and whether a null or [] there was written by the user."""
        owner, _, name = source.rpartition(".")
        if owner == "catalog":
            return getattr(self.cluster, name, None), False
        holder = getattr(self.read.spec, owner, None) if owner else self.read.spec
        if holder is None:
            return None, False
        value = getattr(holder, name, None)
        return value, not owner and value in (None, ()) and name in self.read.spec.model_fields_set

    def place(self, name: str) -> str:
        return place_of(self.read.name, name, self.read.lines)

    def wrong(self, name: str, message: str) -> None:
        self.problems.append(Problem(self.place(name), message))

    def missing(self, name: str, ways: str) -> None:
        message = f"missing; give it in the spec{', ' + ways if ways else ''}, or with --set {name}=..."
        self.problems.append(Missing(self.place(name), message, field=name))

    def remark(self, name: str, message: str) -> None:
        self.remarks.append(Problem(self.place(name), message))
