#!/usr/bin/env bash
#
# Undo what the run has left on the cluster: cancel its jobs that have not ended, and remove SCRIPTS_DIR.
#
# Runs on:  your machine (bash 3.2 or later); one session with the login node
# Reads:    config.sh, lib.sh, remote.sh, login/cleanup.sh, .run/
# Writes:   .run/; the queue: the jobs are cancelled; SCRIPTS_DIR: it is removed (the code, the results and the logs
#           of the job stay)
# Calls:    basename cat date dirname mkdir mv rm sed ssh tail tr
# Undo:     none; a cancelled job has to be submitted again
# Exit:     0 done, 1 a job is still there, 2 wrong use, 13 cannot tell (then nothing was removed),
#           130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"

# What the login node needs to know of the build or the job, if one was ever submitted.
describe() {
    [ -z "$(kept "$1.token")" ] || printf '%s;%s;%s ' "$(kept "$1.token")" "$(kept "$1.id")" "$(kept "$1.cluster")"
}

# forget_lost KIND: of a submission whose answer got lost, nothing is there any more; the next one is a new one.
forget_lost() {
    [ -n "$(kept "$1.id")" ] || rm -f "$state/$1.token"
}

begin_step
code=0
on_login cleanup.sh "jobs=$(describe build)$(describe job)" </dev/null || code=$?
answers told | while IFS= read -r line; do
    say "$line"
done
expect_end 1 "$code"
forget_lost build
forget_lost job
