# Passed means proven: what it takes to believe that a job which ended with exit code 0 did its work.
#
# Runs on:  your machine (bash 3.2 or later); sourced together with facts.sh and verdict.sh
# Reads:    $exit_there and the answers of the last look
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=facts.sh source=verdict.sh source=config.sh

# has_proof KIND: whether what proves success, or disproves it, is there to be read.
has_proof() {
    [ -z "$(answer unread)" ] || return 1
    [ "$1" = build ] || [ "${#SUCCESS_PATTERNS[@]}" -eq 0 ] || [ -n "$(answer success)" ] || return 1
    case $(answer exit) in '' | none) return 1 ;; esac
}

# judge_completed KIND WHAT: Slurm's COMPLETED alone is not believed: it is also what a launch that never happened looks like.
judge_completed() {
    local well="$2 ended with exit code 0" success failure unread
    success=$(answer success)
    failure=$(answer failure)
    unread=$(answer unread)
    if [ "$exit_there" != 0:0 ] && [ -n "$exit_there" ]; then
        conclude FAILED "$2 is COMPLETED with exit code $exit_there" 'the excerpt of its log says where'
    elif [ -n "$failure" ]; then
        conclude FAILED "$well, but its log says: $failure" 'where that line is harmless, correct failure_patterns (an empty list for none)'
    elif [ "$(answer log)" = none ]; then
        conclude FAILED "$well, but there is no log: it never ran" 'ask the site why its node did not start it; sinfo --list-reasons tells whether that node was drained'
    elif [ -n "$unread" ] && { [ -z "$success" ] || [ "${#FAILURE_PATTERNS[@]}" -gt 0 ]; }; then
        conclude UNKNOWN "$well, but $unread cannot be read, and the patterns of the spec are looked for there" 'see that it can be read on the login node, and run the same again'
    elif [ "$1" = job ] && [ "${#SUCCESS_PATTERNS[@]}" -gt 0 ] && [ -z "$success" ]; then
        conclude FAILED "$well, but its log has none of the success patterns" 'if the job is right, correct success_patterns'
    else
        judge_marks "$well"
    fi
}

judge_marks() {
    local exit_file
    exit_file=$(answer exit)
    case $exit_file in
        '0 proven') believe "$1, and every task left its mark of having run" ;;
        '') conclude UNKNOWN "$1, but $SCRIPTS_DIR/log on $SSH_HOST, where its tasks leave their marks, cannot be seen" 'look whether it is there, and look at the log of the job' ;;
        [1-9]*) conclude FAILED "$1, but its script noted exit code ${exit_file%% *}" 'look at the log of the job' ;;
        *) conclude FAILED "$1, but its tasks left no mark of having run$(explain_exit)" 'look at the log: a container that could not start also ends with 0' ;;
    esac
}
