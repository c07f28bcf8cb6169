#!/usr/bin/env bash
#
# Check that this machine and the cluster have what the run needs, before anything is changed.
#
# Runs on:  your machine (bash 3.2 or later); asks the login node, in one session
# Reads:    config.sh, lib.sh, remote.sh, login/preflight.sh
# Writes:   .run/
# Calls:    basename cat date dirname git mkdir mv sed ssh tail tr
# Expects:  iconv tar, to be installed
# Undo:     nothing to undo
# Exit:     0 all is there, 2 wrong use, 3 something is missing or the cluster cannot be reached,
#           130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"

readonly FAILED=3

check_here() {
    need $FAILED git iconv ssh tar
    git -C "$REPO_ROOT" rev-parse --git-dir >/dev/null 2>"$state/errors" ||
        die $FAILED "$REPO_ROOT is not a git repository that can be read here: $(last_words "$state/errors"). Correct repo_root in the spec, or go to the machine that has it, and run ./preflight.sh again."
}

# The connection itself is the first check: your own ssh configuration, nothing asked of you, five seconds to connect.
check_there() {
    local code=0
    on_login preflight.sh </dev/null || code=$?
    [ "$code" -ne "$CANNOT_TELL" ] || tell_no_answer
    answers missing | while IFS= read -r line; do
        say "on $SSH_HOST: $line"
    done
    [ -z "$(answer missing)" ] || die $FAILED "$SSH_HOST lacks what is said above. Mend that and run ./preflight.sh again."
    expect_end $FAILED "$code"
}

# Nothing came back: ssh did not get there, which it says with 255; or a shell there did not run the script.
tell_no_answer() {
    [ "$(kept ssh_code)" -ne 255 ] || tell_unreachable
    case $(cat "$state/errors") in
        *bash*'not found'*) die $FAILED "$SSH_HOST has no bash on the PATH of a plain ssh command: $(trouble_there). Have it installed, or your shell there set its PATH, and run ./preflight.sh again." ;;
        *) die $FAILED "$SSH_HOST let us in, but ran no script: $(trouble_there). Look for what ends or replaces the shell in your start-up files there (.bashrc, .cshrc), and run ./preflight.sh again." ;;
    esac
}

# What ssh said, and what to look at then.
tell_unreachable() {
    local why advice
    why=$(last_words "$state/errors")
    case $(cat "$state/errors") in
        *'Could not resolve'*) advice='Check the name in ssh_host and in your ssh configuration' ;;
        *'IDENTIFICATION HAS CHANGED'*)
            why='its host key is not the one in your known_hosts'
            advice="Somebody may stand in between: ask the site whether the key was changed; only then take out the old one ($(sed -n 's/^ *\(ssh-keygen .* -R .*\)/\1/p' "$state/errors" | tr -d '\r')), log in once by hand"
            ;;
        *'verification failed'*)
            why='its host key is not in your known_hosts'
            advice="Log in once by hand (ssh $SSH_HOST), comparing the fingerprint with the one that the site gives"
            ;;
        *'Permission denied'*) advice='Check that your key is loaded (ssh-add -l) and known to the site; a site that asks for a code wants mfa_style: true in the spec' ;;
        *refused* | *'timed out'* | *'No route'* | *unreachable*) advice='Check the network, a VPN, and the port in your ssh configuration' ;;
        *) advice="Check that 'ssh $SSH_HOST true' works by itself" ;;
    esac
    die $FAILED "cannot reach $SSH_HOST: ${why:-ssh gave no reason}. $advice, and run ./preflight.sh again."
}

begin_step
check_here
check_there
say "$SSH_HOST is ready: $(answer slurm), as $(answer user) on $(answer host)"
[ "$(answer accounting)" != off ] || say "$SSH_HOST keeps no accounts: of a job that has ended, Slurm can tell for some minutes only, and after that what the job left itself. Let monitor.sh see its end."
