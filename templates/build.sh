#!/usr/bin/env bash
#
{% if build_command %}
# Build the code in REPO_DIR, by build_command.sh.
{% else %}
# Build the code in REPO_DIR, by its scripts/build_wheel.py.
{% endif %}
#
# Usage:    build.sh CONTAINER_IMAGE USER_ROOT_DIR SCRIPTS_DIR REPO_DIR [ARGUMENT...]
{% if container %}
# Runs on:  a compute node, in the container, started by build.slurm
{% else %}
# Runs on:  a compute node, started by build.slurm
{% endif %}
{% if build_command %}
# Reads:    REPO_DIR, SCRIPTS_DIR/build_command.sh (which is given the ARGUMENTs)
# Writes:   REPO_DIR; SCRIPTS_DIR/log: marks that it was here
# Calls:    bash sed, and what build_command.sh calls
{% else %}
# Reads:    REPO_DIR
# Writes:   REPO_DIR; SCRIPTS_DIR/log: marks that it was here
# Calls:    python3 sed, and what build_wheel.py calls
{% endif %}
# Exit:     that of the build

case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac
set -euo pipefail

readonly scripts=$3 repo=$4
shift 4
readonly base=$scripts/log/build.$SLURM_JOB_ID

export PYTHONUNBUFFERED=1
cd "$repo"
printf 'here\n' >"$base.start"
{% if build_command %}
bash "$scripts/build_command.sh" "$@"
{% else %}
python3 scripts/build_wheel.py "$@"
{% endif %}
printf 'here\n' >"$base.end"
