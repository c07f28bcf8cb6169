# What the local steps share: talking, failing, and keeping the record of a run.
#
# Runs on:  your machine (bash 3.2 or later); sourced by each step after config.sh
# Reads:    $bundle, the folder of this bundle
# Writes:   .run/, or $GEN_STATE_DIR where that is set (for a bundle that is read-only)
# Calls:    basename cat date mkdir mv sed tr
#
# shellcheck shell=bash

step=$(basename "$0" .sh)
state=${GEN_STATE_DIR:-$bundle/.run}
spoken='' # yes once this step has said why it ends as it does
readonly CANNOT_TELL=13 INTERRUPTED=130

say() {
    printf '%s: %s\n' "$step" "$*" >&2
}

# die CODE WHAT...: tell what failed and stop with CODE.
die() {
    local code=$1
    shift
    spoken=yes
    say "$*"
    (keep trouble "$step: $*") || : "a disk that is full as well must not take the place of what failed"
    exit "$code"
}

# refuse WHAT...: stop, since this was called in a way or at a time that makes no sense.
refuse() {
    spoken=yes
    say "$*"
    exit 2
}

# need CODE COMMAND...: stop with CODE unless every command is there.
need() {
    local code=$1 name
    shift
    for name in "$@"; do
        command -v "$name" >/dev/null || die "$code" "$name is not installed here. Install it and run ./$step.sh again."
    done
}

# last_words FILE: the last line of a program's complaint, as it can stand in a sentence.
last_words() {
    tr -d '\000-\010\013-\037\177' <"$1" | sed -n -e '/[^[:space:]]/h' -e '$ {g;s/[.[:space:]]*$//;p;}'
}

# keep NAME VALUE: remember VALUE in the record of this run; kept NAME: give it back, or nothing.
keep() {
    local why
    why=$({ printf '%s\n' "$2" >"$state/$1.new" && mv "$state/$1.new" "$state/$1"; } 2>&1) || lose_record "$why"
}

# lose_record WHY: stop, since this run could not be remembered; so nothing is done that would have to be.
lose_record() {
    refuse "cannot write to $state: ${1##*: }. Set GEN_STATE_DIR to a folder that can be written to, or make room there, and run ./$step.sh again."
}

kept() {
    [ ! -e "$state/$1" ] || cat "$state/$1"
}

# put_aside: move the record of the last run under earlier/, to make room for the next one.
put_aside() {
    local place item
    [ -z "$(kept job.token)" ] || [ -n "$(kept ended)" ] ||
        say "the job of the run before ($(kept job.id)) is not known to have ended; it is left alone"
    place=$state/earlier/$(date -u +%Y%m%dT%H%M%SZ)
    mkdir -p "$place"
    for item in "$state"/*; do
        case $item in "$state/earlier" | "$state/branch") ;; *) mv "$item" "$place/" ;; esac
    done
    say "the record of the run before is in $place"
}

make_state() {
    local why
    why=$(mkdir -p "$state" 2>&1) || lose_record "$why"
}

# begin_step: open the record; from here on, finish_step runs however the step ends.
begin_step() {
    make_state
    [ -z "$(kept bundle)" ] || [ "$(kept bundle)" = "$BUNDLE_ID" ] || put_aside
    keep bundle "$BUNDLE_ID"
    record start
    trap 'finish_step $?' EXIT
    trap 'exit $INTERRUPTED' HUP INT TERM
}

finish_step() {
    local code=$1
    trap - EXIT
    trap '' HUP INT TERM
    if [ -z "$spoken" ] && [ "$code" -ne 0 ] && [ "$code" -ne "$INTERRUPTED" ]; then
        say "stopped by a trouble of its own here (see above), code $code. Nothing was concluded; run ./$step.sh again."
        code=$CANNOT_TELL
    fi
    tidy
    [ "$code" -ne 0 ] || keep "done.$step" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    (record end "$code") || : "told, and less than what this ended with"
    exit "$code"
}

# tidy: what must happen however a step ends. A step that has something to tidy up defines its own.
tidy() {
    :
}

# record EVENT [CODE]: add a line to events.jsonl, for programs that follow the run.
record() {
    local why
    why=$({ printf '{"time":"%s","step":"%s","event":"%s"%s}\n' \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$step" "$1" "${2:+,\"code\":$2}" >>"$state/events.jsonl"; } 2>&1) || lose_record "$why"
}
