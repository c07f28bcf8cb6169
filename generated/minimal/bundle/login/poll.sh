# One look at a job: its state in the queue, a hang in its new log bytes, and, when it is over, all that tells how it ended.
#
# Runs on:  the login node, after login/end.sh
# Given:    kind, job, cluster, token, since (when it was submitted), out, err, out_seen, err_seen (bytes searched before)
# Writes:   the queue: on a hang, the job is cancelled; a scratch folder, gone again when this ends
# Reports:  queue=STATE|REASON|START|NODES, or the word that ask_queue puts in its place; other=what else has this id;
#           hopeless=yes where asking again is of no use; out_seen, err_seen; progress; hang, and left=STATE where
#           scancel did not end the job; over=yes where it is not there or has ended, and then what login/end.sh reports
# Calls:    cat cut date grep id mktemp rm sacct scancel scontrol sed sleep squeue tail timeout touch tr wc
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=slurm.sh source=end.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}" "${kind:?}" "${job:?}" "${cluster?}" "${token:?}" "${since:?}" "${out:?}" "${err:?}" "${out_seen:?}" "${err_seen:?}"

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
        [ "$found" -le 1 ] || cannot_tell "cannot search $file"
        [ ! -s "$scratch/found" ] || hang=$(tail -n 1 "$scratch/found" | show_line)
    fi
    report "${name}_seen" "$size"
}

search_logs() {
    hang=''
    [ ! -r "$out" ] || report progress "$(tail -c 4096 "$out" | show_line)"
    [ "${#HANG_PATTERNS[@]}" -gt 0 ] || return 0
    printf '%s\n' "${HANG_PATTERNS[@]}" >"$scratch/phrases"
    search_log out "$out" "$out_seen"
    search_log err "$err" "$err_seen"
    [ -n "$hang" ] && [[ $queue == RUNNING\|* ]] || return 0
    queue=$(cancel "$job" "$token" "$cluster") || cannot_tell "the log says \"$hang\", and scancel failed: $(complaint)"
    report hang "$hang"
    is_over "$queue" || report left "${queue%%|*}"
}

main() {
    local code=0
    forget_options
    queue=$(ask_queue "$job" "$token" "$cluster") || code=$?
    [ "$code" -ne 3 ] || report hopeless yes
    [ "$queue" != unknown ] || cannot_tell "squeue gave no answer about job $job: $(complaint)"
    report queue "$queue"
    [ "${queue%%|*}" != other ] || report other "${queue#*|}"
    search_logs
    if is_over "$queue" || [ "$queue" = unlisted ]; then
        report over yes
        ask_end
    fi
}

main </dev/null
