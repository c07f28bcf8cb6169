#!/usr/bin/env bash
#
# Run the steps in order; where an earlier run stopped, go on from there.
#
# Usage:    ./run_all.sh [--dry-run] [--from STEP | --only STEP]
#             --dry-run    say what would be done, and do nothing
#             --from STEP  do STEP and those after it, even if they were done before
#             --only STEP  do STEP alone
# Steps:    preflight sync submit_build submit monitor collect; and cleanup, only when asked for
# Runs on:  your machine (bash 3.2 or later)
# Reads:    config.sh, lib.sh, collect.sh, and what each step reads
# Writes:   .run/; what each step writes
# Calls:    basename bash cat date dirname mkdir mv rm sed, and what each step calls
# Undo:     ./cleanup.sh
# Exit:     that of the step that failed: 0 passed, 1 job failed, 2 wrong use, 3 preflight, 5 sync,
#           6 build, 7 submit, 8 time-out, 9 hang, 10 out of memory, 11 cancelled, 12 cluster, 13 cannot tell, 130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"

readonly STEPS='preflight sync submit_build submit monitor collect'

# read_options OPTION...: into $dry, $from and $only.
read_options() {
    dry='' from='' only=''
    while [ $# -gt 0 ]; do
        case $1 in
            --dry-run) dry=yes ;;
            --from)
                from=$(choose "${2-}" "$STEPS")
                shift
                ;;
            --only)
                only=$(choose "${2-}" "$STEPS cleanup")
                shift
                ;;
            *) refuse "unknown option $1; see ./run_all.sh --help" ;;
        esac
        shift
    done
    [ -z "$from" ] || [ -z "$only" ] || refuse '--from and --only exclude each other'
}

# choose STEP STEPS: STEP, if it is one of STEPS.
choose() {
    case " $2 " in
        *" $1 "*) printf '%s\n' "$1" ;;
        *) refuse "'$1' is no step here; give one of: $2" ;;
    esac
}

# is_done STEP: whether this run need not do it again. The connection is always checked; an unfinished watch goes on.
is_done() {
    case $1 in
        preflight) return 1 ;;
        monitor) [ -n "$(kept ended)" ] ;;
        *) [ -n "$(kept "done.$1")" ] ;;
    esac
}

tell_plan() {
    local name
    for name in $STEPS; do
        printf '%-13s %s\n' "$name" "$(sed -n '3s/^# //p' "$bundle/$name.sh")"
        is_done "$name" && printf '%-13s %s\n' '' "(done before, $(kept "done.$name"); not done again)"
    done
    printf '%-13s %s\n' '' 'Nothing was done: this was a dry run.'
}

# A run that has ended and been reported makes room for the next. --from makes steps undone, unless a job is under way.
open_run() {
    local name undone=''
    make_state
    if [ -z "$from" ]; then
        [ -z "$(kept ended)" ] || [ -z "$(kept done.collect)" ] || put_aside
        return
    fi
    for name in $STEPS; do
        [ "$name" != "$from" ] || undone=yes
        [ -z "$undone" ] || rm -f "$state/done.$name"
        case $undone/$name in
            yes/submit_build) forget build ;;
            yes/submit) forget job ;;
        esac
    done
}

# forget KIND: make room for another build or job, if this one has ended.
forget() {
    [ -n "$(kept "$1.id")" ] || [ -z "$(kept "$1.token")" ] || refuse "whether a $1 of this run was submitted is not known, as the answer got lost. Let ./run_all.sh look for it, or give it up with ./cleanup.sh"
    [ -z "$(kept "$1.id")" ] || [ -n "$(kept ended)$(kept "$1.passed")" ] || refuse "$1 $(kept "$1.id") of this run is not known to have ended. Let ./run_all.sh see its end, or cancel it with ./cleanup.sh"
    rm -f "$state/$1.id" "$state/$1.token" "$state/$1.passed"
    [ "$1" != job ] || rm -f "$state/ended" "$state/status"
}

# run_steps: each step in turn, until one fails.
run_steps() {
    local name code
    for name in $STEPS; do
        if is_done "$name"; then
            say "$name was done before"
            continue
        fi
        code=0
        bash "$bundle/$name.sh" || code=$?
        if [ "$code" -ne 0 ]; then
            end_early "$name" "$code"
            return "$code"
        fi
    done
    return "$(kept code)"
}

# end_early STEP CODE: a build or a job that failed is reported before its exit code ends the run.
end_early() {
    case $1/$2 in
        */130) say "interrupted; what is submitted goes on. ./run_all.sh goes on from here, ./cleanup.sh cancels it" ;;
        */13) say "nothing was concluded; ./run_all.sh goes on from here" ;;
        submit_build/* | monitor/*) [ -z "$(kept status)" ] || bash "$bundle/collect.sh" || say 'no report was written; run ./collect.sh again' ;;
    esac
}

read_options "$@"
if [ -n "$dry" ]; then
    tell_plan
elif [ -n "$only" ]; then
    bash "$bundle/$only.sh"
else
    open_run
    run_steps
fi
