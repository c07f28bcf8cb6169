#!/usr/bin/env bash
#
# Build the code in REPO_DIR, by its scripts/build_wheel.py.
#
# Usage:    build.sh CONTAINER_IMAGE USER_ROOT_DIR SCRIPTS_DIR REPO_DIR [ARGUMENT...]
# Runs on:  a compute node, in the container, started by build.slurm
# Reads:    REPO_DIR
# Writes:   REPO_DIR; SCRIPTS_DIR/log: marks that it was here
# Calls:    python3 sed, and what build_wheel.py calls
# Exit:     that of the build

case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac
set -euo pipefail

readonly scripts=$3 repo=$4
shift 4
readonly base=$scripts/log/build.$SLURM_JOB_ID

export PYTHONUNBUFFERED=1
cd "$repo"
printf 'here\n' >"$base.start"
python3 scripts/build_wheel.py "$@"
printf 'here\n' >"$base.end"
