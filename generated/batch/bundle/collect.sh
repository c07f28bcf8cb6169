#!/usr/bin/env bash
#
# Bring back the end of the logs, and write the report of the run: report.txt for people, report.json for programs.
#
# Runs on:  your machine (bash 3.2 or later); one session with the login node
# Reads:    config.sh, lib.sh, remote.sh, login/collect.sh, .run/
# Writes:   .run/: report.txt, report.json, and the record
# Calls:    basename cat date dirname iconv mkdir mv sed ssh tail tr
# Undo:     nothing to undo
# Exit:     0 the report is written, 2 wrong use, 3 iconv is missing, 13 the logs could not be read, 130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"

# json TEXT: TEXT as a JSON string; json_lines: the lines that come in, as a JSON array.
json() {
    printf '"%s"' "$(printf '%s' "$1" | tr '\t' ' ' | tr -d '\000-\010\013-\037' | iconv -c -f UTF-8 -t UTF-8 | sed 's/[\\"]/\\&/g')"
}

json_lines() {
    local between='' line
    printf '['
    while IFS= read -r line; do
        printf '%s%s' "$between" "$(json "$line")"
        between=','
    done
    printf ']'
}

fetch_excerpt() {
    local code=0 lines=100
    of=$(kept verdict_of)
    [ "$(kept status)" != HANG_DETECTED ] || lines=200
    on_login collect.sh "out=$(kept "$of.out")" "err=$(kept "$of.err")" "lines=$lines" </dev/null || code=$?
    expect_end "$CANNOT_TELL" "$code"
}

write_json() {
    local name proven=false
    printf '{\n'
    case $(kept proven) in yes) proven=true ;; esac
    printf '  "exit_code": %s,\n  "proven": %s,\n' "$(kept code)" "$proven"
    for name in status reason advice slurm_state slurm_exit elapsed nodes snapshot; do
        printf '  "%s": %s,\n' "$name" "$(json "$(kept $name)")"
    done
    printf '  "bundle_id": %s,\n' "$(json "$BUNDLE_ID")"
    printf '  "job_name": %s,\n' "$(json "$JOB_NAME")"
    printf '  "job_id": %s,\n' "$(json "$(kept job.id)")"
    printf '  "build_job_id": %s,\n' "$(json "$(kept build.id)")"
    printf '  "ssh_host": %s,\n' "$(json "$SSH_HOST")"
    printf '  "logs": {"out": %s, "err": %s},\n' "$(json "$(kept "$of.out")")" "$(json "$(kept "$of.err")")"
    printf '  "excerpt": {"out": %s, "err": %s}\n}\n' "$(answers out_line | json_lines)" "$(answers err_line | json_lines)"
}

write_text() {
    printf '%s: %s\n\n' "$(kept status)" "$(kept reason)"
    [ -z "$(kept advice)" ] || printf 'Next       %s\n' "$(kept advice)"
    printf 'Job        %s  %s\n' "$(kept job.id)" "$JOB_NAME"
    [ -z "$(kept build.id)" ] || printf 'Build      %s\n' "$(kept build.id)"
    printf 'Slurm      %s, exit code %s, %s on %s\n' "$(kept slurm_state)" "$(kept slurm_exit)" "$(kept elapsed)" "$(kept nodes)"
    printf 'Code       %s\n' "$(kept snapshot)"
    printf 'Log        %s:%s\n           %s:%s\n' "$SSH_HOST" "$(kept "$of.out")" "$SSH_HOST" "$(kept "$of.err")"
    printf '\n---- the end of %s\n' "$(kept "$of.out")"
    answers out_line
    printf '\n---- the end of %s\n' "$(kept "$of.err")"
    answers err_line
}

begin_step
[ -n "$(kept status)" ] || refuse "there is nothing to report yet. Run ./monitor.sh first."
need 3 iconv
fetch_excerpt
write_json >"$state/report.json.new"
write_text >"$state/report.txt.new"
mv "$state/report.json.new" "$state/report.json"
mv "$state/report.txt.new" "$state/report.txt"
say "the report is in $state/report.txt and report.json"
