# Every value of this bundle that its steps use, with what it means and where it came from.
#
# Made by gen 0.1.0 from spec.json. To change a value, change the spec and run
# `gen bundle` again; where there is no gen, change it here. What the nodes use stands in build.slurm and
# recipes/, in the lines under the header.
#
# Note: spec.json:3: mfa_style: true: the bundle uses an open connection of yours where there is one, and else says how to open it
#
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2016,SC2088  # read by the other scripts; values stand as they are, nothing in them expands

# The login node, as ssh takes it (spec: ssh_host)
readonly SSH_HOST='hpcuser@login.aurora.example.org'

# How ssh is called: never asking, and with a limit to its waiting (gen's own; the rest is in your ssh configuration)
readonly SSH_OPTIONS=('-o' 'BatchMode=yes' '-o' 'ConnectTimeout=5' '-o' 'ServerAliveInterval=15' '-o' 'ServerAliveCountMax=4' '-o' 'ControlMaster=no' '-o' 'ControlPath=~/.ssh/gen-%C')

# The folder on the cluster that has to be there (spec: remote_cwd)
readonly REMOTE_CWD='/lustre/users/hpcuser'

# Your clone (spec: repo_root)
readonly REPO_ROOT='/home/hpcuser/src/engine'

# Where the cluster clones and fetches from (spec: repo_url)
readonly REPO_URL='ssh://git@git.example.org/hpcuser/engine.git'

# How the temporary branch on origin begins (derived: slurm_user, model_name; the time is added at the run)
readonly BRANCH_PREFIX='hpcuser_engine'

# Your root on the cluster (spec: remote_cwd)
readonly USER_ROOT='/lustre/users/hpcuser'

# The clone on the cluster (derived: remote_cwd/<name of repo_url>)
readonly REMOTE_REPO='/lustre/users/hpcuser/engine'

# Where the logs and the results of the job go (derived: remote_repo_path/work_dirs/<job_name>, as no work_dir is given)
readonly REMOTE_WORK='/lustre/users/hpcuser/engine/work_dirs/llm_research.batch'

# Where the scripts for the nodes go (derived: remote_work_dir, bundle_id)
readonly SCRIPTS_DIR='/lustre/users/hpcuser/engine/work_dirs/llm_research.batch/scripts-eab4c7fb556d'

# Folders of the clone that are wiped and restored from the snapshot (default)
readonly REFRESH_PATHS=('cpp/')

# Local files that go to REMOTE_WORK (spec: extra_files, custom_script)
readonly EXTRA_FILES=('/home/hpcuser/data/prompts.json')

# Your batch script (derived: script_path)
readonly BATCH_SCRIPT='job.slurm'

# What sbatch is told besides; it outweighs the lines of the script (derived: the values of the spec)
readonly JOB_OPTIONS=('--job-name=llm_research.batch' '--account=llm_research' '--partition=batch' '--gpus-per-node=8' '--nodes=4' '--time=02:00:00' '--output=bench_%j.out' '--error=bench_%j.err' '--no-requeue')

# What the job has in its environment (spec: env)
readonly JOB_ENVIRONMENT=('NCCL_DEBUG=INFO')

# Names whose values go from your environment to the job's (spec: pass_env)
readonly PASS_ENV=('HF_TOKEN')

# The name of the job (derived: account.recipe)
readonly JOB_NAME='llm_research.batch'

# The log of the job, in REMOTE_WORK (spec: log_file_pattern)
readonly OUT_LOG='bench_%j.out'

# Its error log (derived: bench_%j.out)
readonly ERR_LOG='bench_%j.err'

# A job whose log has one of these, in any case, is cancelled (default)
readonly HANG_PATTERNS=('hang detected')

# One of these has to be in the log of a job that passed (spec: success_patterns)
readonly SUCCESS_PATTERNS=('passed')

# None of these may be in it (spec: failure_patterns, then what Slurm prints of a step that failed)
readonly FAILURE_PATTERNS=('FAILED' 'Traceback' 'srun: error: ' 'pyxis: failed to export')

# Seconds between two looks at a job, at first (default)
readonly POLL_SECONDS=30

# and later (default)
readonly POLL_SECONDS_MAX=120

# How long the job is watched (default)
readonly MONITOR_SECONDS=3600

# How long a silent cluster is borne with (default)
readonly PATIENCE_SECONDS=600

# How long a job is COMPLETING before a word is said (default)
readonly SLOW_END_SECONDS=300

# What tells this bundle from others (derived: every value above)
readonly BUNDLE_ID='eab4c7fb556d'
