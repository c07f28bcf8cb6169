#!/bin/sh
#
# Run command.sh as one task of the job, and leave a mark at its start and at its end.
#
# Runs on:  a compute node, started by srun in recipes/job.slurm
# Given:    MARKS and COMMAND, in the environment
# Reads:    COMMAND, which is command.sh
# Writes:   MARKS: RANK.start, and RANK.end with the exit code; what command.sh writes
# Calls:    bash sed, and what command.sh calls
# Exit:     that of command.sh; 127 where there is no bash

case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac
set -u

if ! command -v bash >/dev/null; then
    printf 'task.sh: there is no bash here, which command.sh is run with; take an image that has one\n' >&2
    exit 127
fi
printf 'here\n' >"$MARKS/$SLURM_PROCID.start" || exit 1
code=0
bash "$COMMAND" || code=$?
printf '%s\n' "$code" >"$MARKS/$SLURM_PROCID.end"
exit "$code"
