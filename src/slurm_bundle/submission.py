"""Turns resolved values into the options of sbatch, one text an option, as they stand in #SBATCH lines."""

from slurm_bundle.resolving import Resolution


def log_names(pattern: str) -> tuple[str, str]:
    """Give the names of the log and of the error log, from the spec's pattern for the log."""
    return pattern, f"{pattern.removesuffix('.out')}.err"


def common_options(r: Resolution) -> list[str]:
    """What every submission says: who pays, where, and on which terms of the site."""
    options = [f"--account={r['account']}", f"--partition={r['partition']}"]
    if r["gpus_per_node"]:
        options.append(f"--gpus-per-node={r['gpus_per_node']}")
    options += [f"--{name}={r[name]}" for name in ("qos", "reservation", "constraint", "comment") if r[name]]
    return options


def job_options(r: Resolution, *, tasks: int, out_log: str, err_log: str) -> tuple[str, ...]:
    """The options of the job. Log names are relative to the work folder, which it is submitted from."""
    asked = r.read.spec.slurm_params
    options = [f"--job-name={r['job_name']}", *common_options(r), f"--nodes={r['node_count']}"]
    if r["recipe"] != "batch":
        options += [f"--ntasks={tasks}", f"--ntasks-per-node={r['tasks_per_node']}"]
    elif asked is not None:
        options += [f"--ntasks={asked.ntasks}"] if asked.ntasks else []
        options += [f"--ntasks-per-node={asked.ntasks_per_node}"] if asked.ntasks_per_node else []
    if asked is not None and asked.gres and not r["gpus_per_node"]:
        options.append(f"--gres={asked.gres}")
    options += [f"--cpus-per-task={r['cpus_per_task']}"] if r["cpus_per_task"] else []
    options += [f"--mem={r['mem']}"] if r["mem"] else []
    options += ["--exclusive"] if r["exclusive"] else []
    options += [f"--network={r['network']}"] if r["network"] else []
    options += [f"--time={r['time_limit']}", f"--output={out_log}", f"--error={err_log}"]
    # Sites differ in what they do where nothing is said; a log that is not appended to begins anew with the job.
    options += ["--requeue", "--open-mode=append"] if r["requeue"] else ["--no-requeue"]
    return (*options, *(r["sbatch_options"] or ()))


def build_options(r: Resolution) -> tuple[str, ...]:
    """The options of the build: one task on one node, as the procedure has it."""
    return (
        f"--job-name={r['account']}-trtllm.build",
        *common_options(r),
        "--nodes=1",
        "--ntasks=1",
        "--ntasks-per-node=1",
        f"--time={r['build_time_limit']}",
        f"--output=scripts-{r['bundle_id']}/log/build_%j.out",
        "--no-requeue",
    )
