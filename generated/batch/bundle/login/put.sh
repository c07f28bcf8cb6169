# Unpack a file that follows on stdin into the work folder.
#
# Runs on:  the login node, after login/lib.sh
# Reads:    a tar stream on stdin
# Writes:   REMOTE_WORK; a scratch folder, gone again when this ends
# Calls:    mkdir mktemp rm sed tar
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}"

main() {
    local work
    work=$(at_home "$REMOTE_WORK")
    mkdir -p "$work" 2>"$scratch/errors" || fail "cannot make $work: $(sed -n 1p "$scratch/errors")"
    tar -C "$work" -xf - --no-same-owner 2>"$scratch/errors" || fail "cannot unpack into $work: $(sed -n 1p "$scratch/errors")"
}

main
