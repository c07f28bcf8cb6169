# What the facts about the end of a job mean together: one status, why, and what to do next.
#
# Runs on:  your machine (bash 3.2 or later); sourced after jobs.sh and facts.sh
# Reads:    $end of watch, and what facts.sh finds in the answers of its last look
# Writes:   .run/: status and the like
# Calls:    rm
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=jobs.sh source=facts.sh source=config.sh

: "${state:?}"

# conclude STATUS WHY [NEXT]: the verdict, in $status, $reason and $advice.
conclude() {
    status=$1 reason=$2 advice=${3-}
}

# judge KIND: the verdict on a job whose watch is over.
judge() {
    local id
    id=$(kept "$1.id")
    proven=no
    case ${end:?} in
        hang) conclude HANG_DETECTED "$1 $id printed \"$(answer hang)\" and was cancelled" 'look at where the ranks stood in the log before that line' ;;
        timeout) conclude TIMEOUT "the watch is over after its limit, and $1 $id is ${told:-in an unknown state}; it was left alone" 'run ./monitor.sh to go on watching, or ./cleanup.sh to cancel it' ;;
        lost) conclude UNKNOWN "nothing was heard of $1 $id for $PATIENCE_SECONDS s: $(trouble_there)" 'look at the connection and run the same again: the job is not touched' ;;
        ended)
            settle "$1"
            judge_state "$1" "$id"
            ;;
    esac
}

judge_state() {
    local what="$1 $2"
    case ${state_there?} in
        COMPLETED) judge_completed "$1" "$2" ;;
        FAILED) conclude FAILED "$what failed with exit code ${exit_there:-unknown}$(explain_exit)" 'the excerpt of its log says where' ;;
        TIMEOUT | DEADLINE) conclude TIMEOUT "$what reached its time limit" 'raise time_limit in the spec' ;;
        OUT_OF_ME*) conclude OUT_OF_MEMORY "$what ran out of memory" 'raise mem in the spec, or take fewer tasks a node' ;;
        CANCELLED) conclude CANCELLED "$what was cancelled, by somebody or by Slurm" 'if it was not you, ask sacct --jobs='"$2"' --format=State%30 who it was' ;;
        NODE_FAIL | BOOT_FAIL | PREEMPTED | REVOKED) conclude ERROR "$what was ended by the cluster: $state_there" 'submit it again; that was no fault of the job' ;;
        *) conclude UNKNOWN "$what has left the queue, and neither sacct, scontrol nor the job's own exit file says how it ended" 'ask the site how to look up ended jobs, and look at its log' ;;
    esac
}

explain_exit() {
    case $exit_there in
        0:53) printf '%s' ' (Slurm could not open the log: its folder is missing or not writable on the node)' ;;
        *:9) printf '%s' ' (killed by signal 9, often for want of memory)' ;;
    esac
}

# judge_completed KIND ID: Slurm's COMPLETED alone is not believed: it is also what a launch that never happened looks like.
judge_completed() {
    local what="$1 $2" found lacking=''
    found=$(answer failure)
    [ "$1" = build ] || [ "${#SUCCESS_PATTERNS[@]}" -eq 0 ] || [ -n "$(answer success)" ] || lacking=yes
    if [ "$exit_there" != 0:0 ] && [ -n "$exit_there" ]; then
        conclude FAILED "$what is COMPLETED with exit code $exit_there" 'the excerpt of its log says where'
    elif [ -n "$found" ]; then
        conclude FAILED "$what ended with exit code 0, but its log says: $found" 'where that line is harmless, correct failure_patterns'
    elif [ -n "$lacking" ]; then
        conclude FAILED "$what ended with exit code 0, but its log has none of the success patterns" 'if the job is right, correct success_patterns'
    elif [ "$exit_file" = '0 proven' ]; then
        proven=yes
        conclude PASSED "$what ended with exit code 0, and every task left its mark of having run"
    elif [ -z "$exit_file" ] && [ -n "$(answer success)" ]; then
        proven=yes
        conclude PASSED "$what ended with exit code 0, and its log has a success pattern: $(answer success)"
    else
        conclude FAILED "$what ended with exit code 0, but its tasks left no mark of having run" 'look at the log: a container that could not start also ends with 0'
    fi
}

# keep_verdict KIND: note the verdict. One that may still change (the watch ended, not the job) is not the end of the run,
# and neither is a build that is done.
keep_verdict() {
    case $1/$status in build/PASSED) return ;; esac
    rm -f "$state/done.collect"
    keep verdict_of "$1"
    keep status "$status"
    keep code "$(exit_code "$status")"
    keep reason "$reason"
    keep advice "$advice"
    keep proven "$proven"
    keep_facts
    case $end/$status in
        timeout/* | lost/* | */UNKNOWN) ;;
        *) keep ended yes ;;
    esac
}

# exit_code STATUS: the exit code that stands for a status.
exit_code() {
    case $1 in
        PASSED) printf 0 ;;
        FAILED) printf 1 ;;
        BUILD_FAILED) printf 6 ;;
        TIMEOUT) printf 8 ;;
        HANG_DETECTED) printf 9 ;;
        OUT_OF_MEMORY) printf 10 ;;
        CANCELLED) printf 11 ;;
        ERROR) printf 12 ;;
        *) printf 13 ;;
    esac
}
