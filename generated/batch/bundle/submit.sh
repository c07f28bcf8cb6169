#!/usr/bin/env bash
#
# Submit the job, once, and note its id.
#
# Runs on:  your machine (bash 3.2 or later); one session with the login node
# Reads:    config.sh, lib.sh, remote.sh, jobs.sh, login/once.sh, login/submit.sh
# Sends:    your batch script, to SCRIPTS_DIR
# Writes:   .run/; SCRIPTS_DIR on the cluster; the queue: one job is submitted; what your batch script writes
# Calls:    basename cat date dirname mkdir mv rm sed ssh tail tar tr
# Undo:     ./cleanup.sh cancels the job
# Exit:     0 submitted, now or before; 2 wrong use, 7 submit failed, 13 cannot tell, 130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"
. "$bundle/jobs.sh"

# The values of PASS_ENV travel on the connection and in the environment of the job; no file of the bundle holds them.
gather_secrets() {
    local name
    secrets=()
    for name in "${PASS_ENV[@]}"; do
        [ -n "${!name-}" ] || refuse "$name, one of pass_env, is not set here. Export it and run ./submit.sh again."
        secrets+=("$name=${!name}")
    done
}

begin_step
[ -n "$(kept snapshot)" ] || refuse "the code has not been sent. Run ./sync.sh first."
[ -z "$(kept ended)" ] || refuse "job $(kept job.id) of this run has ended. Start a new run with ./run_all.sh."
gather_secrets
submit_once job "recipes/$BATCH_SCRIPT"
