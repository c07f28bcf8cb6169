#!/usr/bin/env bash
#
# Build the code on a node of the cluster, and wait until it is built.
#
# Runs on:  your machine (bash 3.2 or later); asks the login node, one session a look
# Reads:    config.sh, lib.sh, remote.sh, jobs.sh, watch.sh, facts.sh, proof.sh, verdict.sh,
#           login/once.sh, login/submit.sh, login/end.sh, login/poll.sh
# Sends:    build.slurm and build.sh, to SCRIPTS_DIR
# Writes:   .run/; SCRIPTS_DIR on the cluster; the queue: one job is submitted; what build.slurm writes
# Calls:    basename cat date dirname mkdir mv rm sed sleep ssh tail tar tr
# Undo:     ./cleanup.sh cancels the build
# Exit:     0 built, 2 wrong use, 6 build failed, 7 submit failed, 8 time is up, 12 cluster error, 13 cannot tell,
#           130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"
. "$bundle/jobs.sh"
. "$bundle/watch.sh"
. "$bundle/facts.sh"
. "$bundle/proof.sh"
. "$bundle/verdict.sh"

begin_step
[ -n "$(kept snapshot)" ] || refuse "the code has not been sent. Run ./sync.sh first."
submit_once build build.slurm build.sh
watch build "$BUILD_SECONDS"
judge_build
keep_verdict build
case $status in
    PASSED)
        keep build.passed yes
        say "the build is done: $reason"
        ;;
    BUILD_FAILED) die 6 "$reason. The last lines of its log: ./collect.sh. No job was submitted." ;;
    *) die "$(exit_code "$status")" "$reason" ;;
esac
