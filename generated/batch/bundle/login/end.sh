# How a job ended: everything that tells it, side by side. What it means together is decided by whoever asked.
#
# Runs on:  the login node, after login/slurm.sh and before login/poll.sh
# Given:    kind, job, cluster, token, since, out, err
# Reports:  accounting=on, off or unknown, row=JOBID|STATE|EXIT|ELAPSED|NODES (sacct: the job and its steps),
#           control=STATE|EXIT|ELAPSED|NODES (scontrol), exit=CODE PROOF WORDS (the job script's own) or none, log=none,
#           success and failure (the line with the pattern), unread=a log that cannot be read, other=what else has this
#           id
# Calls:    date grep sacct scontrol sed tail touch
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=slurm.sh source=../config.sh

: "${scratch:?}" "${kind:?}" "${job:?}" "${cluster?}" "${token:?}" "${since:?}" "${out:?}" "${err:?}"

# Munge bears with clocks that are 300 s apart: what is older than that is of an older job with this id.
find_earliest() {
    earliest=$(date -d "@$((since - 300))" +%Y-%m-%dT%H:%M:%S)
    touch -d "$earliest" "$scratch/earliest"
}

# is_fresh FILE: whether it can be read, and is none that an older job with this id left.
is_fresh() {
    [ -r "$1" ] && [ ! "$1" -ot "$scratch/earliest" ]
}

# With --duplicates sacct shows all jobs that had this id, and all starts of a job that Slurm started again.
ask_accounting() {
    local code=0 id state code_there elapsed nodes submit user ours=''
    ask sacct ${cluster:+"--clusters=$cluster"} --noheader --parsable2 --duplicates --jobs="$job" \
        --format=JobID,State,ExitCode,Elapsed,NodeList,Submit,UID || code=$?
    case $code in
        0) report accounting on ;;
        2) report accounting off ;;
        *) report accounting unknown ;;
    esac
    [ "$code" -eq 0 ] || return 0
    while IFS='|' read -r id state code_there elapsed nodes submit user; do
        if [ "$id" = "$job" ]; then
            ours=yes
            [ "${user:-$UID}" = "$UID" ] && [[ ! ${submit:-$earliest} < $earliest ]] || ours=''
            [ -n "$ours" ] || report other "$state in accounting, submitted $submit by user $user"
        fi
        [ -z "$ours" ] || report row "$id|$state|$code_there|$elapsed|$nodes"
    done < <(reply)
}

ask_controller() {
    local user folder command
    ask scontrol ${cluster:+"--clusters=$cluster"} --oneliner show job "$job" || return 0
    IFS='|' read -r user folder command <<<"$(reply | sed -nE 's/.* UserId=[^ ]*\(([0-9]+)\).* Command=(.*) WorkDir=(.*) StdErr=.*/\1|\3|\2/p')"
    is_ours "$token" "$user" "$folder" "$command" || return 0
    report control "$(reply | sed -nE 's/.* JobState=([A-Z_]+).* ExitCode=([0-9]+:[0-9]+).* RunTime=([^ ]+).* NodeList=([^ ]+).*/\1|\2|\3|\4/p')"
}

# The exit file is there, or it is not, or its folder cannot be seen and nothing can be told.
read_exit_file() {
    local folder
    folder=$(at_home "$SCRIPTS_DIR")/log
    if is_fresh "$folder/$kind.$job.exit"; then
        report exit "$(tail -n 1 "$folder/$kind.$job.exit")"
    elif [ -d "$folder" ]; then
        report exit none
    fi
}

# The end of the log tells of a build that went wrong, whatever its exit code.
check_build_log() {
    is_fresh "$out" || return 0
    tail -n 50 "$out" >"$scratch/found"
    ! grep -aqF 'Successfully built' "$scratch/found" || return 0
    grep -aE '^FAILED: |fatal error: |: error: ' "$scratch/found" >"$scratch/errors" || return 0
    report failure "$(show_line <"$scratch/errors")"
}

# search_log_end FILE: look for the patterns; 0 found, 1 not found or no such log, 2 it cannot be told.
search_log_end() {
    if is_fresh "$1"; then
        grep -aF -m 1 -f "$scratch/patterns" "$1" >"$scratch/found" 2>"$scratch/errors"
    elif [ -d "${1%/*}" ]; then
        [ ! -e "$1" ] || [ -r "$1" ] || return 2
        return 1
    else
        return 2
    fi
}

# search_end NAME PATTERN...: the first line of the logs that holds one of the patterns.
search_end() {
    local name=$1 file code
    shift
    [ $# -gt 0 ] || return 0
    printf '%s\n' "$@" >"$scratch/patterns"
    for file in "$out" "$err"; do
        code=0
        search_log_end "$file" || code=$?
        case $code in
            0)
                report "$name" "$(show_line <"$scratch/found")"
                return
                ;;
            1) ;;
            *) report unread "$file" ;;
        esac
    done
}

ask_end() {
    find_earliest
    ask_accounting
    ask_controller
    read_exit_file
    [ -e "$out" ] || [ -e "$err" ] || [ ! -d "${out%/*}" ] || report log none
    if [ "$kind" = build ]; then
        check_build_log
    else
        search_end success ${SUCCESS_PATTERNS[@]+"${SUCCESS_PATTERNS[@]}"}
        search_end failure ${FAILURE_PATTERNS[@]+"${FAILURE_PATTERNS[@]}"}
    fi
}
