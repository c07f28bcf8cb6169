# Every value of this bundle that its steps use, with what it means and where it came from.
#
# Made by gen 0.1.0 from spec.json. To change a value, change the spec and run
# `gen bundle` again; where there is no gen, change it here. What the nodes use stands in build.slurm and
# recipes/, in the lines under the header.
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
readonly REPO_ROOT='/home/hpcuser/src/TensorRT-LLM'

# Where the cluster clones and fetches from (spec: repo_url)
readonly REPO_URL='git@git.example.org:hpcuser/TensorRT-LLM.git'

# How the temporary branch on origin begins (derived: slurm_user, model_name; the time is added at the run)
readonly BRANCH_PREFIX='hpcuser_deepseek_v3_lite'

# Your root on the cluster (spec: default_user_root_dir)
readonly USER_ROOT='/lustre/users/hpcuser'

# The clone on the cluster (derived: default_user_root_dir/<name of repo_url>)
readonly REMOTE_REPO='/lustre/users/hpcuser/TensorRT-LLM'

# Where the logs and the results of the job go (derived: remote_repo_path/work_dirs/<name of work_dir>)
readonly REMOTE_WORK='/lustre/users/hpcuser/TensorRT-LLM/work_dirs/deepseek_v3_lite_20260430'

# Where the scripts for the nodes go (derived: remote_work_dir, bundle_id)
readonly SCRIPTS_DIR='/lustre/users/hpcuser/TensorRT-LLM/work_dirs/deepseek_v3_lite_20260430/scripts-b1a21b76512a'

# Folders of the clone that are wiped and restored from the snapshot (default)
readonly REFRESH_PATHS=('cpp/')

# The container image of the build (derived: container_image, in the form that enroot reads)
readonly ENROOT_IMAGE='registry.example.org#tensorrt-llm/devel:pytorch-26.05-py3-x86_64-ubuntu24.04'

# What the build command is given (derived: device_type H200)
readonly BUILD_ARGUMENTS=('-a' '90-real' '--nvtx')

# How long the build is watched: its limit, and a day in the queue (derived: build_time_limit)
readonly BUILD_SECONDS=93600

# The name of the job (derived: account.model_name)
readonly JOB_NAME='llm_research.deepseek_v3_lite'

# The log of the job, in REMOTE_WORK (default)
readonly OUT_LOG='slurm-%j.out'

# Its error log (derived: slurm-%j.out)
readonly ERR_LOG='slurm-%j.err'

# A job whose log has one of these, in any case, is cancelled (default)
readonly HANG_PATTERNS=('hang detected')

# One of these has to be in the log of a job that passed (spec: success_patterns)
readonly SUCCESS_PATTERNS=('Total Token Throughput')

# None of these may be in it (default: what Slurm prints of a step that failed)
readonly FAILURE_PATTERNS=('launch failed: Plugin initialization failed' 'pyxis: failed to export' 'pyxis: ignoring --container')

# Seconds between two looks at a job, at first (default)
readonly POLL_SECONDS=30

# and later (default)
readonly POLL_SECONDS_MAX=120

# How long the job is watched (spec: monitor_timeout)
readonly MONITOR_SECONDS=14400

# How long a silent cluster is borne with (default)
readonly PATIENCE_SECONDS=600

# How long a job is COMPLETING before a word is said (default)
readonly SLOW_END_SECONDS=300

# What tells this bundle from others (derived: every value above)
readonly BUNDLE_ID='b1a21b76512a'
