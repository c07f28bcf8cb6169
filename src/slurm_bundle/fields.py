"""Turns the fields that a job spec may have into one model: names, kinds, and what an editor says about each.

The doc string under each field is its description in the JSON Schema. Every field may be left out; `model_fields_set`
tells a field that is null from one that is absent.
"""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from slurm_bundle.kinds import (
    Clocks,
    ClusterPath,
    ContainerName,
    Count,
    Duration,
    Environment,
    FileName,
    Gpus,
    Header,
    Image,
    JobName,
    Line,
    Lines,
    LocalPath,
    LocalPaths,
    LogPattern,
    Memory,
    Mounts,
    MpiPlugin,
    NamedPath,
    Names,
    Packages,
    Patterns,
    RefreshPaths,
    RepoUrl,
    SbatchOptions,
    SshHost,
    SshOptions,
    Text,
    TextOrNumber,
    Walltime,
    Word,
)

WorkflowType = Literal["pytest", "eval", "bench", "benchmark", "perf_sanity", "custom"]
Recipe = Literal["single", "mpi", "distributed", "launcher", "batch"]

# One of these tells what to run.
COMMANDS = ("command", "test_cmd", "bench_cmd", "eval_cmd", "custom_cmd", "custom_script")

# Two names of one thing.
ALIASES = (
    ("slurm_cluster", "cluster_name"),
    ("container_image", "docker_image"),
    ("mounts", "container_mounts"),
    ("monitor_timeout_seconds", "monitor_timeout"),
    ("work_dir", "local_work_dir"),
    ("required_devices_per_node", "required_devices"),
    ("env", "custom_env"),
)


class SpecObject(BaseModel):
    """An object of a spec: no unknown fields, no conversions, never changed. `""` is a field that is not given."""

    # A validator is built when it is first used; the doc strings are read by schema.py, which alone wants them.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    # Here an empty text would be a mistake of the writer's.
    refuses_empty: ClassVar[frozenset[str]] = frozenset(
        {"ssh_host", "time_limit", "alloc_time_limit", "build_time_limit"}
    )

    # Here it means the same as null, which is not the same as absent.
    empty_is_null: ClassVar[frozenset[str]] = frozenset({"default_user_root_dir"})

    @model_validator(mode="before")
    @classmethod
    def leave_out_empty(cls, values: Any) -> Any:
        """Leave out the fields that a program wrote as `""`."""
        if not isinstance(values, dict):
            return values
        return {
            name: None if value == "" and name in cls.empty_is_null else value
            for name, value in values.items()
            if value != "" or name in cls.refuses_empty | cls.empty_is_null or name not in cls.model_fields
        }


class SlurmParams(SpecObject):
    """What a program found out for sbatch; the fields of the same meaning outside of it count first."""

    partition: Header = None
    """Slurm partition."""
    account: Header = None
    """Slurm account."""
    time_limit: Walltime = None
    """Walltime in any Slurm form; an integer is minutes."""
    nodes: Count = None
    """Number of nodes."""
    ntasks: Count = None
    """Number of tasks in all."""
    ntasks_per_node: Count = None
    """Number of tasks on each node."""
    gpus_per_node: Gpus = None
    """GPUs to ask for on each node; null asks for none."""
    gres: Header = None
    """Generic resources, such as gpu:8."""
    mpi_plugin: MpiPlugin = None
    """Plugin for srun --mpi, such as pmix."""


class SlurmPartition(SpecObject):
    """A partition as it was found on the cluster."""

    name: Text = None
    """Name of the partition."""
    state: Text = None
    """State, such as up."""
    time_limit: TextOrNumber = None
    """Longest walltime, as sinfo shows it."""
    nodes: TextOrNumber = None
    """Number of nodes, as sinfo shows it."""
    arch: Text = None
    """Architecture of the nodes, such as x86_64."""
    gres: Text = None
    """Generic resources of a node, as sinfo shows them."""
    gpus_per_node: int | None = None
    """GPUs of a node; null where there are none or they are unknown."""
    requires_gres: bool | None = None
    """Whether a job must ask for GPUs."""


class Pmix(SpecObject):
    """The PMIx plugins that were found on the cluster."""

    available: Lines = None
    """What srun --mpi=list shows."""
    preferred: MpiPlugin = None
    """The one to use."""


class SlurmEnv(SpecObject):
    """What a program found on the cluster; used where neither the spec nor the catalog says otherwise."""

    refuses_empty: ClassVar[frozenset[str]] = frozenset()

    user: Text = None
    """User on the cluster."""
    default_account: Header = None
    """Account that Slurm takes when none is given."""
    accounts: Lines = None
    """Accounts of the user."""
    default_partition: Header = None
    """Partition that Slurm takes when none is given."""
    partitions: tuple[SlurmPartition, ...] | None = None
    """Partitions of the cluster."""
    pmix: Pmix | None = None
    """PMIx plugins of the cluster."""
    errors: Lines = None
    """What could not be found out."""
    ssh_host: SshHost = None
    """ssh destination."""
    slurm_user: Word = None
    """User on the cluster."""
    slurm_cluster: Line = None
    """Name of a catalog entry."""
    cluster_name: Line = None
    """Name of a catalog entry."""
    mfa_style: bool | None = None
    """Whether the login asks for a second factor; null where unknown."""
    remote_cwd: ClusterPath = None
    """Working directory on the cluster."""
    default_user_root_dir: ClusterPath = None
    """The user's root on the cluster."""
    default_models_repo: ClusterPath = None
    """Where models live on the cluster."""
    account: Header = None
    """Slurm account."""
    partition: Header = None
    """Slurm partition."""
    gpus_per_node: Gpus = None
    """GPUs of a node."""
    device_type: Line = None
    """Short name of the GPU."""
    mounts: Mounts = None
    """Mounts that every container of the cluster has."""
    container_mounts: Mounts = None
    """The same as mounts."""

    @model_validator(mode="before")
    @classmethod
    def take_arrays(cls, values: Any) -> Any:
        """Take JSON's arrays for partitions: a strict model takes tuples only."""
        return with_tuple(values, "partitions")


def with_tuple(values: Any, name: str) -> Any:
    if isinstance(values, dict) and isinstance(values.get(name), list):
        return values | {name: tuple(values[name])}
    return values


class Sync(SpecObject):
    """How the code gets to the cluster."""

    mode: Literal["origin"] | None = None
    """origin: through a temporary branch of the repository's origin."""


class Spec(SpecObject):
    """A job for a Slurm cluster."""

    # Where it runs
    ssh_host: SshHost = None
    """ssh destination, used as it stands: user@host, host, or a name of ~/.ssh/config."""
    ssh_options: SshOptions = None
    """Extra words for ssh: -p, -i, -J, -o KEY=VALUE, -F, -l, such as ["-p", "2222"]."""
    slurm_user: Word = None
    """User on the cluster, ready for ssh, never rewritten."""
    slurm_cluster: Line = None
    """Name of an entry of the cluster catalog."""
    cluster_name: Line = None
    """The same as slurm_cluster."""
    mfa_style: bool | None = None
    """true: the login asks for a second factor; false: it does not; null: to be found out."""
    remote_init: Line = None
    """One line that runs first on the login node, such as: module load slurm"""
    remote_cwd: ClusterPath = None
    """Working directory on the cluster: absolute, or ~/..."""
    create_remote_cwd: bool | None = None
    """Whether to make remote_cwd where it is missing."""
    default_user_root_dir: ClusterPath = None
    """The user's root on the cluster; null or empty: remote_cwd is used."""
    default_models_repo: ClusterPath = None
    """Where models live on the cluster."""

    # What it asks Slurm for
    account: Header = None
    """Slurm account."""
    partition: Header = None
    """Slurm partition; several with commas between."""
    job_name: JobName = None
    """Name of the job; otherwise <account>.<model_name or workflow_type>."""
    node_count: Count = None
    """Number of nodes; otherwise total_required_devices / required_devices_per_node, rounded up."""
    total_required_devices: Count = None
    """GPU processes in all."""
    required_devices_per_node: Count = None
    """GPU processes on each node."""
    required_devices: Count = None
    """The same as required_devices_per_node."""
    gpus_per_node: Gpus = None
    """Set: --gpus-per-node goes on every Slurm command; null: on none."""
    device_type: Line = None
    """Short name of the GPU: B200, GB200, B300, GB300, H100, H200, L40S, A100."""
    time_limit: Walltime = None
    """Walltime: 02:00:00, 1-12:00:00, 2h; an integer is minutes. Default two hours."""
    cpus_per_task: Count = None
    """CPUs of each task."""
    mem: Memory = None
    """Memory of each node, such as 64G; 0 is all of it."""
    requeue: bool | None = None
    """Whether Slurm may start the job again from its beginning when a node failed; its log goes on. Default false."""
    exclusive: bool | None = None
    """Whether to have the nodes alone."""
    qos: Header = None
    """Quality of service."""
    reservation: Header = None
    """Reservation to run in."""
    constraint: Header = None
    """Features that the nodes must have."""
    network: Header = None
    """Value of --network, such as sharp."""
    comment: Header = None
    """Comment of the job, as some sites ask for."""
    gpu_clocks: Clocks = None
    """'<mem>,<graphics>' in MHz, set on each node before the command."""
    sbatch_options: SbatchOptions = None
    """Extra options for sbatch that have no field here, such as --nice=100."""
    slurm_params: SlurmParams | None = None
    """What a program found out for sbatch."""
    slurm_env: SlurmEnv | None = None
    """What a program found on the cluster."""

    # What runs
    recipe: Recipe | None = None
    """single process; mpi; distributed (a task per GPU); launcher (a task per node, torchrun); batch (own script)."""
    command: Text = None
    """What to run, as you would type it into bash. It goes into a file of its own."""
    test_cmd: Text = None
    """The command of a test run; at most one command may be given."""
    bench_cmd: Text = None
    """The command of a benchmark; at most one command may be given."""
    eval_cmd: Text = None
    """The command of an evaluation; at most one command may be given."""
    custom_cmd: Text = None
    """Any other command; at most one command may be given."""
    custom_script: NamedPath = None
    """A local script that is sent along and run by bash; at most one command may be given."""
    env: Environment = None
    """Variables of the job, by name. No secrets: pass_env is for them."""
    custom_env: Environment = None
    """The same as env."""
    pass_env: Names = None
    """Names of variables whose values go from your environment, when you run it, to the job's; such as HF_TOKEN."""
    script_path: NamedPath = None
    """The user's own batch script on this machine (recipe batch)."""
    script_name: FileName = None
    """File name of the batch script on the cluster."""
    extra_files: LocalPaths = None
    """Local files to put into remote_work_dir."""
    model_name: Line = None
    """Name of the model; part of derived names."""
    workflow_type: WorkflowType | None = None
    """Kind of the run; part of derived names."""

    # The container
    container_runtime: Literal["pyxis", "none"] | None = None
    """pyxis, or none: the command runs on the node itself."""
    container_image: Image = None
    """Image, such as ubuntu:24.04, or the path of a .sqsh file on the cluster."""
    docker_image: Image = None
    """The same as container_image."""
    container_name: ContainerName = None
    """Name of the container on the nodes."""
    mounts: Mounts = None
    """SRC:DST[:FLAGS], flags joined by +, such as /data:/data:ro; array or comma list."""
    container_mounts: Mounts = None
    """The same as mounts."""
    container_mount_home: bool | None = None
    """Whether the home folder is seen inside."""
    container_writable: bool | None = None
    """Whether the root file system is writable inside."""
    packages: Packages = None
    """pip packages for a session's container, exact names."""

    # The code
    repo_root: LocalPath = None
    """Local clone of the code."""
    repo_url: RepoUrl = None
    """Its origin; otherwise what git says in repo_root."""
    repo_branch: Line = None
    """Informational only: what is in repo_root is taken."""
    remote_repo_path: ClusterPath = None
    """Clone on the cluster; otherwise <default_user_root_dir>/<name of the repository>."""
    work_dir: NamedPath = None
    """Local work directory."""
    local_work_dir: NamedPath = None
    """The same as work_dir."""
    remote_work_dir: ClusterPath = None
    """Work directory on the cluster; otherwise <remote_repo_path>/work_dirs/<name of work_dir>."""
    sync: Sync | None = None
    """How the code gets to the cluster."""
    refresh_paths: RefreshPaths = None
    """Folders of the repository that are wiped and restored from HEAD on the cluster. Default cpp/."""
    build_project: bool | None = None
    """Whether to build on a node before the job. Default true."""
    build_command: Text = None
    """What builds. Default scripts/build_wheel.py."""
    build_time_limit: Walltime = None
    """Walltime of the build. Default two hours."""

    # Watching
    monitor_timeout_seconds: Count = None
    """How long to watch, in seconds. Default one hour."""
    monitor_timeout: Duration = None
    """The same as a text: 1h, 30m, 3600s, HH:MM:SS."""
    poll_seconds: Count = None
    """Seconds between two looks. Default 30."""
    log_file_pattern: LogPattern = None
    """Name of the log with %j, such as train_%j.out."""
    success_patterns: Patterns = None
    """One of these must be in the log at the end."""
    failure_patterns: Patterns = None
    """None of these may be in the log at the end; Slurm's words of failure are added, unless []."""
    hang_patterns: Patterns = None
    """Texts in the log that mean a hang. Default: hang detected."""
    alloc_time_limit: Walltime = None
    """Walltime of a session's allocation."""
    release_allocation: bool | None = None
    """Whether a session's allocation ends with its commands."""

    # Accepted and shown, without an effect
    execution_scenario: Any = None
    """Informational."""
    persistent_mode: Any = None
    """Informational."""
    skip_install: Any = None
    """Informational."""
    checkpoint_path: Any = None
    """Informational."""
    llm_models_root: Any = None
    """Informational."""
    perf_config_yaml: Any = None
    """Informational."""
