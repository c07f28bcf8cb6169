#!/usr/bin/env bash
#
# Check that this machine and the cluster have what the run needs, before anything is changed.
#
# Runs on:  your machine (bash 3.2 or later); asks the login node, in one session
# Reads:    config.sh, lib.sh, remote.sh, login/preflight.sh
# Writes:   .run/
# Calls:    basename cat date dirname git mkdir mv rm sed ssh tail tar tr
# Undo:     nothing to undo
# Exit:     0 all is there, 2 wrong use, 3 something is missing or the cluster cannot be reached, 4 you have to log in

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(cd "$(dirname "$0")" && pwd)
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"

readonly FAILED=3 LOGIN_NEEDED=4

check_here() {
    need $FAILED git ssh tar
    git -C "$REPO_ROOT" rev-parse --git-dir >/dev/null 2>"$state/errors" ||
        die $FAILED "$REPO_ROOT is not a git repository that can be read here: $(tail -n 1 "$state/errors"). Correct REPO_ROOT, or run this on the machine that has it."
}

# find_connection: 0 when one is open: yours, by your own ssh configuration, or the managed one.
find_connection() {
    rm -f "$state/control_path"
    if ssh -o BatchMode=yes -O check "$SSH_HOST" 2>"$state/errors"; then
        keep control_path "$(ssh -G "$SSH_HOST" | sed -n 's/^controlpath //p')"
    else
        ssh "${SSH_OPTIONS[@]}" -O check "$SSH_HOST" 2>"$state/errors"
    fi
}

# The site asks a person for a second factor. That is yours to give, in a terminal, once for the day.
need_connection() {
    ! find_connection || return 0
    [ -d ~/.ssh ] || mkdir -m 700 ~/.ssh # where the socket goes; ssh makes it at its first use only
    say "$SSH_HOST asks you to log in. Run this in a terminal:"
    say "    ssh -fNM -o ControlMaster=yes -o ControlPath=~/.ssh/gen-%C -o ControlPersist=24h $SSH_HOST"
    say 'Where it shows a PIN and an address, open the address, enter the PIN, approve, and press ENTER there.'
    if [ -t 0 ]; then
        read -r -p 'Press ENTER here when that is done: '
        ! find_connection || return 0
        die $LOGIN_NEEDED "there is still no open connection: $(tail -n 1 "$state/errors"). Log in as said above and run ./preflight.sh again."
    fi
    die $LOGIN_NEEDED "no connection to $SSH_HOST is open. Log in as said above and run ./preflight.sh again."
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
need_connection
check_there
say "$SSH_HOST is ready: $(answer slurm), as $(answer user) on $(answer host)"
[ "$(answer accounting)" != off ] || say "$SSH_HOST keeps no accounts: of a job that has ended, Slurm can tell for some minutes only, and after that what the job left itself. Let monitor.sh see its end."
