#!/usr/bin/env bash
#
# Watch the job until it ends, a hang is found or the time for watching is over, and say how it went.
#
# Runs on:  your machine (bash 3.2 or later); asks the login node, one session a look
# Reads:    config.sh, lib.sh, remote.sh, watch.sh, facts.sh, proof.sh, verdict.sh, login/end.sh, login/poll.sh
# Writes:   .run/; the queue: a job that prints one of HANG_PATTERNS is cancelled
# Calls:    basename cat date dirname mkdir mv rm sed sleep ssh tail tr
# Undo:     nothing to undo; stopping this does not stop the job
# Exit:     0 passed, 1 failed, 2 wrong use, 8 time-out, 9 hang, 10 out of memory, 11 cancelled, 12 cluster error,
#           13 cannot tell, 130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"
. "$bundle/watch.sh"
. "$bundle/facts.sh"
. "$bundle/proof.sh"
. "$bundle/verdict.sh"

tell_verdict() {
    spoken=yes
    say "$(kept status): $(kept reason)"
    [ -z "$(kept advice)" ] || say "next: $(kept advice)"
}

begin_step
[ -n "$(kept job.id)" ] || refuse "no job has been submitted. Run ./submit.sh first."
if [ -z "$(kept ended)" ]; then
    watch job "$MONITOR_SECONDS"
    judge job
    keep_verdict job
fi
tell_verdict
exit "$(kept code)"
