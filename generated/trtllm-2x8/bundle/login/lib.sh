# What the login scripts share: reporting, failing, the home directory, and showing a line of a log.
#
# Runs on:  the login node (bash 4.2 or later), between config.sh and login/slurm.sh
# Writes:   a scratch folder, removed at the end
# Reports:  end=CODE. when the script ends, however it ends; the dot says that the line is whole
# Calls:    cut mktemp rm sed tail tr
#
# shellcheck shell=bash

set -euo pipefail
export LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=15'
printf '\n'

# report NAME VALUE: an answer for the side that asked; nothing else on stdout counts.
report() {
    printf '@@gen %s=%s\n' "$1" "$2"
}

leave() {
    rm -rf "$scratch"
    report end "$1."
}

[ -n "${HOME-}" ] || {
    unset HOME
    export HOME=~ # as the list of users has it
}
trap 'report end $?.' EXIT
scratch=$(mktemp -d)
trap 'leave $?' EXIT

# fail WHAT...: stop, since something is wrong; cannot_tell WHAT...: stop, since nobody answered (CANNOT_TELL on the other side).
fail() {
    report error "$*"
    exit 1
}

cannot_tell() {
    report error "$*"
    exit 13
}

# at_home PATH: PATH with a leading ~ made into the home directory here.
at_home() {
    case $1 in
        \~ | \~/*) printf '%s\n' "$HOME${1#\~}" ;;
        *) printf '%s\n' "$1" ;;
    esac
}

# show_line: the last line of what comes in, as it may be shown on a terminal: no carriage returns, no control characters, no end.
show_line() {
    tr '\r' '\n' | tr -d '\000-\010\013-\037\177' | sed '/[^[:space:]]/!d' | tail -n 1 | cut -c 1-200
}
