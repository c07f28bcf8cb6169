"""Turns a TOML catalog of clusters, and what a spec says, into the one cluster that the job is for.

ssh_host_pattern = "{slurm_user}@login.{cluster_name}.example.org"

[clusters.aurora]
mfa_style = true
gpus_per_node = 8
device_type = "H200"

[clusters.aurora.partitions.batch]
max_time = "4:00:00"
nodes = 64
"""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from slurm_bundle.explaining import find_problems
from slurm_bundle.fields import Spec, SpecObject
from slurm_bundle.kinds import Clocks, ClusterPath, Count, Gpus, Header, Line, Mounts, MpiPlugin, Walltime, checked
from slurm_bundle.problems import (
    CatalogError,
    Problem,
    SpecError,
    describe_value,
    join_place,
    name_nearest,
    place_of,
)
from slurm_bundle.secrecy import find_secret
from slurm_bundle.texts import check_ssh_host

PLACEHOLDERS = ("{slurm_user}", "{cluster_name}")
CLUSTER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
TOP_FIELDS = ("ssh_host_pattern", "clusters")


def check_host_pattern(text: str) -> str:
    """Take an ssh destination with `{slurm_user}` and `{cluster_name}` in it, and no other braces."""
    filled = text
    for placeholder in PLACEHOLDERS:
        filled = filled.replace(placeholder, "x")
    if re.search(r"[{}]", filled):
        raise ValueError(f"{text!r} has other braces than {' and '.join(PLACEHOLDERS)}; keep to these two")
    check_ssh_host(filled)
    return text


HostPattern = Annotated[str | None, checked(check_host_pattern)]


class CatalogObject(SpecObject):
    """A table of the catalog; what is absent is unknown."""


class ClusterPartition(CatalogObject):
    """What is known of a partition."""

    max_time: Walltime = None
    """Longest walltime, in any Slurm form."""
    nodes: Count = None
    """Number of nodes, or the most that a job gets."""
    gpus_per_node: Gpus = None
    """GPUs of a node, where they differ from the cluster's."""
    device_type: Line = None
    """Short name of the GPU, where it differs from the cluster's."""


class ClusterTable(CatalogObject):
    """What is known of a cluster, as its table in the catalog says it."""

    mfa_style: bool | None = None
    """Whether the login asks for a second factor."""
    ssh_host_pattern: HostPattern = None
    """ssh destination with {slurm_user} and {cluster_name}; otherwise that of the whole catalog."""
    default_user_root_dir: ClusterPath = None
    """The user's root on the cluster."""
    default_models_repo: ClusterPath = None
    """Where models live on the cluster."""
    gpus_per_node: Gpus = None
    """GPUs of a node."""
    device_type: Line = None
    """Short name of the GPU, such as H200."""
    nodes: Count = None
    """Number of nodes in all; otherwise that of the largest partition."""
    account: Header = None
    """Slurm account."""
    partition: Header = None
    """Slurm partition."""
    mpi: MpiPlugin = None
    """Plugin for srun --mpi."""
    min_poll_seconds: Count = None
    """Seconds that must lie between two looks at the queue."""
    mounts: Mounts = None
    """Mounts that every container of the cluster has."""
    remote_init: Line = None
    """One line that runs first on the login node."""
    container_runtime: Literal["pyxis", "none"] | None = None
    """What runs containers there."""
    topology: Line = None
    """How nodes are wired, in words for the reader of a plan."""
    network: Header = None
    """Value of --network."""
    constraint: Header = None
    """Features that the nodes must have."""
    comment: Header = None
    """Comment that the site asks for."""
    gpu_clocks: Clocks = None
    """'<mem>,<graphics>' in MHz."""
    partitions: dict[str, ClusterPartition] = Field(default_factory=dict)
    """Partitions by name."""


class Cluster(ClusterTable):
    """A cluster of the catalog with its name; `ssh_host_pattern` is its own or that of the whole catalog."""

    name: str


@dataclass(frozen=True)
class Catalog:
    """The clusters that are known, by name. `ssh_host_pattern` is for those that have none of their own."""

    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    ssh_host_pattern: str | None = None


def find_catalog(given: Path | None) -> Catalog:
    """The catalog that was given, else that of $GEN_CATALOG, else ~/.config/gen/clusters.toml where that is there."""
    place = given or Path(os.environ.get("GEN_CATALOG") or Path.home() / ".config" / "gen" / "clusters.toml")
    return load_catalog(place, explicit=given is not None or "GEN_CATALOG" in os.environ)


def load_catalog(path: Path | None, *, explicit: bool) -> Catalog:
    """Read a catalog; a file that is not there is an empty catalog, unless the user named it (`explicit`).

    Raises CatalogError with every problem.
    """
    if path is None:
        return Catalog()
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if not explicit:
            return Catalog()
        raise CatalogError([Problem(path.name, f"there is no catalog {path}; check the path")]) from None
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}); check the path and its permissions"
        raise CatalogError([Problem(path.name, message)]) from None
    import tomllib  # only who has a catalog waits for it

    try:
        values = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CatalogError([Problem(f"{path.name}:{line}", "is no UTF-8; save the file as UTF-8")]) from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogError([explain_toml(str(error), path.name)]) from None
    return read_catalog(values, path.name)


def choose_cluster(
    catalog: Catalog, spec: Spec, *, name: str = "job_spec.json", lines: Mapping[str, int] | None = None
) -> Cluster | None:
    """Give the cluster that the spec names, or the only one that has the hardware it asks for, or None.

    None means that the spec's own fields have to suffice: nothing is named and ssh_host or no hardware is given, or a
    name is given and there is no catalog to look it up in. `name` and `lines` are the spec file's, for messages.

    Raises SpecError for an unknown name, and where no cluster or several have the hardware.
    """
    if spec.slurm_cluster is not None:
        return find_cluster(catalog, spec.slurm_cluster, place_of(name, "slurm_cluster", lines))
    if spec.cluster_name is not None:
        return find_cluster(catalog, spec.cluster_name, place_of(name, "cluster_name", lines))
    wanted_per_node = spec.required_devices_per_node or spec.required_devices
    if spec.ssh_host is not None or spec.device_type is None or wanted_per_node is None:
        return None
    objections = {
        cluster.name: object_to_cluster(cluster, spec, wanted_per_node) for cluster in catalog.clusters.values()
    }
    fitting = [cluster for cluster in objections if objections[cluster] is None]
    if len(fitting) == 1:
        return catalog.clusters[fitting[0]]
    raise SpecError([Problem(place_of(name, "device_type", lines), explain_choice(objections, spec, wanted_per_node))])


def read_catalog(values: Mapping[str, Any], name: str) -> Catalog:
    """Make a catalog of parsed TOML; `name` is the file's. Raises CatalogError with every problem."""
    problems = [
        Problem(
            place_of(name, key), f"unknown field{name_nearest(key, TOP_FIELDS) or '; a cluster is [clusters.NAME]'}"
        )
        for key in values
        if key not in TOP_FIELDS
    ]
    pattern = values.get("ssh_host_pattern")
    try:
        ClusterTable.model_validate({"ssh_host_pattern": pattern})
    except ValidationError as error:
        problems += find_problems(error, ClusterTable, name=name)
        pattern = None
    tables = values.get("clusters", {})
    if not isinstance(tables, dict):
        problems.append(Problem(place_of(name, "clusters"), "expected tables; write [clusters.NAME]"))
        tables = {}
    clusters = {}
    for cluster_name, table in tables.items():
        read = read_cluster(cluster_name, table, name)
        if isinstance(read, Cluster):
            clusters[cluster_name] = (
                read if read.ssh_host_pattern else read.model_copy(update={"ssh_host_pattern": pattern})
            )
        else:
            problems += read
    if problems:
        raise CatalogError(problems)
    return Catalog(clusters, pattern)


def read_cluster(cluster_name: str, table: object, name: str) -> Cluster | list[Problem]:
    """Make one cluster, or give all that is wrong with its table."""
    root = join_place("clusters", [cluster_name])
    if not CLUSTER_NAME.fullmatch(cluster_name):
        message = f"{cluster_name!r} is no name of a cluster; give letters, digits, '.', '_' and '-'"
        return [Problem(place_of(name, root), message)]
    if not isinstance(table, dict):
        message = f"expected a table, got {describe_value(table)}; write [clusters.{cluster_name}]"
        return [Problem(place_of(name, root), message)]
    problems = [
        Problem(place_of(name, f"{root}.{key}"), message)
        for key, value in table.items()
        for message in [find_secret(value) if isinstance(value, str) else None]
        if message
    ]
    try:
        known = ClusterTable.model_validate(table)
    except ValidationError as error:
        problems += find_problems(error, ClusterTable, name=name, root=root)
    if problems:
        return problems
    return Cluster.model_validate(
        {**{key: getattr(known, key) for key in known.model_fields_set}, "name": cluster_name}
    )


def explain_toml(said: str, name: str) -> Problem:
    """Turn tomllib's `Expected '=' (at line 3, column 5)` into a problem at its place."""
    found = re.fullmatch(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", said, re.DOTALL)
    place = f"{name}:{found[2]}:{found[3]}" if found and found[2] else name
    message = found[1] if found else said
    return Problem(place, f"not TOML here ({message}); write key = value, with texts in double quotes")


def find_cluster(catalog: Catalog, wanted: str, place: str) -> Cluster | None:
    if not catalog.clusters:
        # A pattern alone is a catalog, too: it makes the ssh destination of any name.
        if catalog.ssh_host_pattern and CLUSTER_NAME.fullmatch(wanted):
            return Cluster(name=wanted, ssh_host_pattern=catalog.ssh_host_pattern)
        return None
    if wanted in catalog.clusters:
        return catalog.clusters[wanted]
    known = ", ".join(sorted(catalog.clusters))
    near = name_nearest(wanted, catalog.clusters)
    raise SpecError([Problem(place, f"{wanted!r} is not in the catalog; give one of {known}{near}")])


def object_to_cluster(cluster: Cluster, spec: Spec, wanted_per_node: int) -> str | None:
    """Say why a cluster does not have the hardware, None if it has."""
    kind, gpus, nodes = cluster.device_type, cluster.gpus_per_node, count_nodes(cluster, spec.partition)
    if kind is None or gpus is None:
        return "device_type or gpus_per_node is not known"
    if kind.casefold() != (spec.device_type or "").casefold():
        return f"has {kind}"
    if gpus < wanted_per_node:
        return f"has {gpus} a node"
    wanted_nodes = math.ceil((spec.total_required_devices or 1) / wanted_per_node)
    if nodes is not None and nodes < wanted_nodes:
        return f"has {nodes} node{'s' if nodes > 1 else ''}, {wanted_nodes} are needed"
    return None


def count_nodes(cluster: Cluster, partition: str | None) -> int | None:
    """Give the most nodes that one job can have, None where that is not known."""
    named = cluster.partitions.get(partition or cluster.partition or "")
    if named is not None and named.nodes is not None:
        return named.nodes
    sizes = [part.nodes for part in cluster.partitions.values()]
    return cluster.nodes or max((size for size in sizes if size is not None), default=None)


def explain_choice(objections: Mapping[str, str | None], spec: Spec, wanted_per_node: int) -> str:
    """Say what was asked for, and of each candidate why it was (not) taken."""
    asked = f"{wanted_per_node} {spec.device_type} a node"
    if spec.total_required_devices:
        asked += f", {spec.total_required_devices} in all"
    if not objections:
        return (
            f"no cluster to choose from for {asked}: the catalog is empty; give ssh_host and the fields of the cluster"
        )
    verdicts = "; ".join(f"{name}: {why or 'fits'}" for name, why in sorted(objections.items()))
    fitting = sorted(name for name, why in objections.items() if why is None)
    if fitting:
        return f"several clusters have {asked} ({verdicts}); give slurm_cluster: {' or '.join(fitting)}"
    return f"no cluster has {asked} ({verdicts}); give slurm_cluster, or ssh_host and the fields of the cluster"
