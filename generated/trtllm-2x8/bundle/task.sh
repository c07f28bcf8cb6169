#!/bin/sh
#
# Run command.sh as one task of the job, and leave a mark at its start and at its end.
#
# Runs on:  a compute node, in the container, started by srun in recipes/job.slurm
# Usage:    task.sh MARKS REPO_DIR COMMAND   (as arguments, since of a variable the image's own value would win)
# Reads:    COMMAND, which is command.sh
# Writes:   MARKS: RANK.start, and RANK.end with the exit code; what command.sh writes
# Calls:    bash sed, and what command.sh calls
# Exit:     that of command.sh; 127 where there is no bash, 1 where a mark cannot be left or REPO_DIR cannot be entered

case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac
set -u

fail() {
    printf 'task.sh: %s\n' "$2" >&2
    exit "$1"
}

mark=$1/$SLURM_PROCID
command -v bash >/dev/null || fail 127 'there is no bash here, which command.sh is run with; take an image that has one'
cd "$2" || fail 1 "cannot enter $2 on $SLURMD_NODENAME; is it on a file system that the nodes have?"
printf 'here\n' >"$mark.start" || fail 1 "cannot write $mark.start; is there room?"
code=0
bash "$3" || code=$?
printf '%s\n' "$code" >"$mark.end" || fail $((code > 0 ? code : 1)) "cannot write $mark.end; is there room?"
exit "$code"
