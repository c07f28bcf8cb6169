# What the facts about the end of a job mean together: one status, why, and what to do next.
#
# Runs on:  your machine (bash 3.2 or later); sourced after watch.sh, facts.sh and proof.sh
# Reads:    $end of watch, and the facts
# Writes:   .run/: status and the like
# Calls:    rm
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=watch.sh source=facts.sh source=proof.sh source=config.sh

: "${state:?}"

# conclude STATUS WHY [NEXT]: the verdict, in $status, $reason and $advice; believe WHY: that it passed, and is proven.
conclude() {
    status=$1 reason=$2 advice=${3-} proven=no
}

believe() {
    conclude PASSED "$1"
    proven=yes
}

# judge KIND: the verdict on a job whose watch is over.
judge() {
    local what
    what="$1 $(kept "$1.id")"
    keep verdict_of "$1"
    case ${end:?} in
        hang) conclude HANG_DETECTED "$what printed \"$(answer hang)\" and $(tell_cancelled)" 'look at where the ranks stood in the log before that line' ;;
        timeout) conclude TIMEOUT "the watch is over after its limit, and $what is ${told:-in an unknown state}; it was left alone" 'run ./monitor.sh to go on watching, or ./cleanup.sh to cancel it' ;;
        lost) conclude UNKNOWN "$what was ${told:-never seen}, and then nothing more was heard of it: $(trouble_there)" 'mend that and run the same again: the job is not touched' ;;
        ended) judge_end "$1" "$what" ;;
    esac
}

tell_cancelled() {
    case $(answer left) in
        '' | COMPLETING) printf 'was cancelled' ;;
        *) printf 'is still %s after scancel; run ./cleanup.sh' "$(answer left)" ;;
    esac
}

tell_other() {
    [ -z "$(answer other)" ] || printf ' (its id now belongs to another job: %s)' "$(answer other)"
}

# judge_end KIND WHAT: the verdict on a job that has ended.
judge_end() {
    local what=$2 log exit_file
    log=$(kept "$1.out")
    exit_file=$(answer exit)
    case ${state_there?} in
        COMPLETED) judge_completed "$1" "$2" ;;
        FAILED) conclude FAILED "$what failed with exit code ${exit_there:-unknown}$(explain_exit)" "$(advise_exit)" ;;
        TIMEOUT | DEADLINE) conclude TIMEOUT "$what reached its time limit" 'raise time_limit in the spec' ;;
        OUT_OF_MEMORY) conclude OUT_OF_MEMORY "$what ran out of memory" 'raise mem in the spec, or take fewer tasks a node' ;;
        CANCELLED) conclude CANCELLED "$what was cancelled, by somebody or by Slurm (exit code ${exit_there:-unknown})" "if it was not you, ask sacct --jobs=${what#* } --format=State%30 who it was" ;;
        NODE_FAIL | BOOT_FAIL | PREEMPTED | REVOKED) conclude ERROR "$what was ended by the cluster: $state_there" 'submit it again; that was no fault of the job' ;;
        *) conclude UNKNOWN "$what has left the queue, and neither sacct, scontrol nor the job's own exit file says how it ended$(tell_other)" 'ask the site how to look up ended jobs, and look at its log' ;;
    esac
    case ${source?} in
        squeue) reason="$reason (so says squeue; accounting does not say)" ;;
        exit) reason="$reason (so says its own exit file; accounting does not say)" ;;
    esac
}

# Within judge_end: what the exit code means (CODE:SIGNAL to Slurm; 128 and more is a signal to a shell), or the job
# script's own words, which follow its proof in the exit file ($exit_file); and what to look at next ($log).
explain_exit() {
    local words=''
    case $exit_file in *' unproven '*) words="${exit_file#* unproven }; " ;; esac
    case $exit_there/$words in
        0:53/*) printf ' (Slurm could not open the log: its folder is missing or not writable on %s: %s)' "${nodes:-the node}" "${log%/*}" ;;
        *:9/* | 137:*/*) printf ' (%skilled by signal 9, often for want of memory)' "$words" ;;
        *:15/ | 143:*/) printf ' (ended by signal 15: cancelled, or at its time limit)' ;;
        *) [ -z "$words" ] || printf ' (%s)' "${words%; }" ;;
    esac
}

advise_exit() {
    case $exit_there/$(answer log) in
        0:53/*) printf '%s' "make the folder of the log again with ./run_all.sh --from sync, and see that the nodes have it as well: ${log%/*}" ;;
        */none) printf '%s' 'there is no log; see whether its file system is there and has room' ;;
        [1-9]*:0/*) printf '%s' "the excerpt of its log says where$(advise_unnoted)" ;;
        *) printf '%s' 'the excerpt of its log says where' ;;
    esac
}

# A job of ours notes its end. Where it did not, it cannot write there.
advise_unnoted() {
    case $exit_file in '' | none) printf '%s' '; it could not note its end: see whether its disk is full (df -h, quota)' ;; esac
}

# judge_build: as judge, in the words of a build.
judge_build() {
    judge build
    case $end/$status in
        timeout/*) ;;
        */FAILED | */OUT_OF_MEMORY | */CANCELLED | */TIMEOUT | */HANG_DETECTED) status=BUILD_FAILED ;;
    esac
}

# keep_verdict KIND: note the verdict. One that may still change (the watch ended, not the job) is not the end of the run,
# and neither is a build that is done.
keep_verdict() {
    case $1/$status in build/PASSED) return ;; esac
    rm -f "$state/done.collect"
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
