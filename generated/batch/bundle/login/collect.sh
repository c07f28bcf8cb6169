# Give back the end of a log and of its error log, bounded in lines and in bytes.
#
# Runs on:  the login node, after login/lib.sh
# Given:    out, err (paths), lines (how many of out; of err it is 50)
# Writes:   a scratch folder, gone again when this ends
# Reports:  out_line and err_line, one a line
# Calls:    cut mktemp rm sed tail tr
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${out:?}" "${err:?}" "${lines:?}"

# give NAME FILE LINES: the last LINES of FILE, no line longer than 500 bytes, no control characters.
give() {
    if [ ! -r "$2" ]; then
        report "$1" "(no such file: $2)"
        return
    fi
    tail -c 1000000 "$2" | tr '\r' '\n' | tr -d '\000-\010\013-\037\177' | tail -n "$3" | cut -c 1-500 | sed "s/^/@@gen $1=/"
    printf '\n'
}

main() {
    give out_line "$out" "$lines"
    give err_line "$err" 50
}

main </dev/null
