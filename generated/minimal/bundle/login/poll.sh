# One look at a job: its state in the queue, a hang in its new log bytes, and, when it is over, all that tells how it ended.
#
# Runs on:  the login node, after login/lib.sh
# Given:    kind, job, cluster, out, err, out_seen, err_seen (bytes searched before)
# Writes:   the queue: on a hang, the job is cancelled; a scratch folder, gone again when this ends
# Reports:  queue=STATE|REASON|START|NODES, gone or unknown; out_seen, err_seen; progress; hang; and of the end:
#           ended, row=JOBID|STATE|EXIT|ELAPSED|NODES (sacct), control=the same but the id (scontrol), exit=CODE PROOF
#           (the job script's own word), success and failure (the line with the pattern)
# Calls:    cat cut grep mktemp rm sacct scancel scontrol sed sleep squeue tail timeout tr wc
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}" "${kind:?}" "${job:?}" "${cluster?}" "${out:?}" "${err:?}" "${out_seen:?}" "${err_seen:?}"

ask_queue() {
    queue=unknown
    if ask squeue ${cluster:+"--clusters=$cluster"} --noheader --states=all --jobs="$job" --format='%T|%r|%S|%N'; then
        queue=$(reply | sed -nE '/^[A-Z_]+\|/p' | tail -n 1)
        queue=${queue:-gone}
    else
        report error "squeue: $(complaint)"
    fi
    report queue "$queue"
}

# search_log NAME FILE SEEN: look for a hang phrase in the bytes after SEEN, with an overlap as long as the longest phrase.
search_log() {
    local name=$1 file=$2 seen=$3 size phrase overlap=0 from found=0
    size=$seen
    if [ -r "$file" ]; then
        size=$(wc -c <"$file")
        [ "$size" -ge "$seen" ] || seen=0
        for phrase in "${HANG_PATTERNS[@]}"; do
            [ "${#phrase}" -le "$overlap" ] || overlap=${#phrase}
        done
        from=$((seen > overlap ? seen - overlap : 0))
        tail -c "+$((from + 1))" "$file" | grep -aiF -f "$scratch/phrases" >"$scratch/found" || found=$?
        [ "$found" -le 1 ] || fail "cannot search $file"
        [ ! -s "$scratch/found" ] || hang=$(tail -n 1 "$scratch/found" | show_line)
    fi
    report "${name}_seen" "$size"
}

# The last line of what comes in, as it may be shown on a terminal: no carriage returns, no control characters, no end.
show_line() {
    tr '\r' '\n' | tr -d '\000-\010\013-\037\177' | sed '/[^[:space:]]/!d' | tail -n 1 | cut -c 1-200
}

search_logs() {
    hang=''
    [ ! -r "$out" ] || report progress "$(tail -c 4096 "$out" | show_line)"
    [ "${#HANG_PATTERNS[@]}" -gt 0 ] || return 0
    printf '%s\n' "${HANG_PATTERNS[@]}" >"$scratch/phrases"
    search_log out "$out" "$out_seen"
    search_log err "$err" "$err_seen"
    if [ -n "$hang" ] && [[ $queue == RUNNING\|* ]]; then
        scancel ${cluster:+"--clusters=$cluster"} "$job" 2>"$scratch/errors" ||
            cannot_tell "the log says \"$hang\", and scancel failed: $(cat "$scratch/errors")"
        report hang "$hang"
    fi
}

# Everything that says how the job ended, side by side; what they mean together is decided by whoever asked.
ask_end() {
    local file code=0
    ask sacct ${cluster:+"--clusters=$cluster"} --noheader --parsable2 --jobs="$job" --format=JobID,State,ExitCode,Elapsed,NodeList || code=$?
    case $code in
        0) reply | sed -n 's/^[0-9]/@@gen row=&/p' ;;
        2) report accounting off ;;
        *) report accounting unknown ;;
    esac
    ! ask scontrol ${cluster:+"--clusters=$cluster"} --oneliner show job "$job" ||
        report control "$(reply | sed -nE 's/.* JobState=([A-Z_]+).* ExitCode=([0-9]+:[0-9]+).* RunTime=([^ ]+).* NodeList=([^ ]+).*/\1|\2|\3|\4/p')"
    file=$(at_home "$SCRIPTS_DIR")/log/$kind.$job.exit
    [ ! -r "$file" ] || report exit "$(tail -n 1 "$file")"
    if [ "$kind" = build ]; then
        check_build_log
    else
        search_end success ${SUCCESS_PATTERNS[@]+"${SUCCESS_PATTERNS[@]}"}
        search_end failure ${FAILURE_PATTERNS[@]+"${FAILURE_PATTERNS[@]}"}
    fi
}

# The end of the log tells of a build that went wrong, whatever its exit code.
check_build_log() {
    [ -r "$out" ] || return 0
    tail -n 50 "$out" >"$scratch/found"
    ! grep -aqF 'Successfully built' "$scratch/found" || return 0
    grep -aE '^FAILED: |fatal error: |: error: ' "$scratch/found" >"$scratch/errors" || return 0
    report failure "$(show_line <"$scratch/errors")"
}

# search_end NAME PATTERN...: the first line of the logs that holds one of the patterns.
search_end() {
    local name=$1 file
    shift
    [ $# -gt 0 ] || return 0
    printf '%s\n' "$@" >"$scratch/patterns"
    for file in "$out" "$err"; do
        [ -r "$file" ] || continue
        grep -aF -m 1 -f "$scratch/patterns" "$file" >"$scratch/found" || continue
        report "$name" "$(show_line <"$scratch/found")"
        return 0
    done
}

main() {
    forget_options
    ask_queue
    search_logs
    case $queue in
        unknown | PENDING\|* | CONFIGURING\|* | RUNNING\|* | COMPLETING\|* | REQUEUE*\|*) ;;
        SUSPENDED\|* | STOPPED\|* | RESIZING\|* | SIGNALING\|* | STAGE_OUT\|*) ;;
        *)
            ask_end
            report ended yes
            ;;
    esac
}

main </dev/null
