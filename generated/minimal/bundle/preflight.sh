#!/usr/bin/env bash
#
# Check that this machine and the cluster have what the run needs, before anything is changed.
#
# Runs on:  your machine (bash 3.2 or later); asks the login node, in one session
# Reads:    config.sh, lib.sh, remote.sh, login/preflight.sh
# Writes:   .run/
# Calls:    basename cat date dirname git mkdir mv sed ssh tail tar tr
# Undo:     nothing to undo
# Exit:     0 all is there, 2 wrong use, 3 something is missing or the cluster cannot be reached

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(cd "$(dirname "$0")" && pwd)
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"

readonly FAILED=3

check_here() {
    need $FAILED git ssh tar
    git -C "$REPO_ROOT" rev-parse --git-dir >/dev/null 2>"$state/errors" ||
        die $FAILED "$REPO_ROOT is not a git repository that can be read here: $(tail -n 1 "$state/errors"). Correct REPO_ROOT, or run this on the machine that has it."
}

# The connection itself is the first check: your own ssh configuration, nothing asked of you, five seconds to connect.
check_there() {
    local code=0
    on_login preflight.sh </dev/null || code=$?
    [ "$code" -ne "$CANNOT_TELL" ] || die $FAILED "cannot reach $SSH_HOST: $(trouble_there). $(advise), then run ./preflight.sh again."
    answers missing | while IFS= read -r line; do
        say "on $SSH_HOST: $line"
    done
    expect_end $FAILED "$code" 'Mend that and run ./preflight.sh again.'
}

# What to look at, by what ssh said.
advise() {
    case $(cat "$state/errors") in
        *'Could not resolve'*) printf '%s' 'Check the name in ssh_host and in your ssh configuration' ;;
        *'Host key verification failed'* | *'IDENTIFICATION HAS CHANGED'*) printf '%s' 'Check with the site that its host key is the one offered, and your known_hosts' ;;
        *'Permission denied'*) printf '%s' 'Check that your key is loaded (ssh-add -l) and known to the site; a site that asks for a code wants mfa_style: true in the spec' ;;
        *refused* | *'timed out'* | *'No route'*) printf '%s' 'Check the network, a VPN, and the port in your ssh configuration' ;;
        *) printf '%s' "Check that 'ssh $SSH_HOST true' works by itself" ;;
    esac
}

begin_step
check_here
check_there
say "$SSH_HOST is ready: $(answer slurm), as $(answer user) on $(answer host)"
[ "$(answer accounting)" != off ] || say "$SSH_HOST keeps no accounts: of a job that has ended, Slurm can tell for some minutes only, and after that what the job left itself. Let monitor.sh see its end."
