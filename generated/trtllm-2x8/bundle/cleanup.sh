#!/usr/bin/env bash
#
# Undo what the run has left on the cluster: cancel its jobs that have not ended, and remove SCRIPTS_DIR.
#
# Runs on:  your machine (bash 3.2 or later); one session with the login node
# Reads:    config.sh, lib.sh, remote.sh, login/cleanup.sh, .run/
# Writes:   .run/; the queue: the jobs are cancelled; SCRIPTS_DIR: it is removed (the code, the results and the logs
#           of the job stay)
# Calls:    basename cat date dirname mkdir mv sed ssh tail tr
# Undo:     none; a cancelled job has to be submitted again
# Exit:     0 done, 1 a job is still there, 2 wrong use, 13 cannot tell (then nothing was removed),
#           130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(cd "$(dirname "$0")" && pwd)
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"

begin_step
code=0
on_login cleanup.sh "jobs=$(kept build.id) $(kept job.id)" "tokens=$(kept build.token) $(kept job.token)" \
    "cluster=$(kept job.cluster)" </dev/null || code=$?
answers told | while IFS= read -r line; do
    say "$line"
done
expect_end 1 "$code" 'Run ./cleanup.sh again.'
