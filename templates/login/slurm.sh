# What the login scripts share that ask Slurm: three outcomes for every question, and no other job taken for ours.
#
# Runs on:  the login node, after login/lib.sh
# Calls:    cat id scancel sed sleep squeue tail timeout
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh

: "${scratch:?}"

# What was reviewed is what counts: no option of a Slurm command comes from the environment of this shell. What stays
# says where Slurm is and how to speak with it.
forget_options() {
    local name
    for name in "${!SLURM_@}" "${!SBATCH_@}" "${!SRUN_@}" "${!SALLOC_@}" "${!SQUEUE_@}" "${!SACCT_@}" "${!SINFO_@}" "${!SCANCEL_@}" "${!PYXIS_@}"; do
        case $name in
            SLURM_CONF* | SLURM_CLUSTERS | SLURM_JWT | SLURM_SACK*) ;;
            *) unset "$name" ;;
        esac
    done
}

# ask COMMAND...: have Slurm answer, with up to three tries; reply prints the answer, complaint what stderr said last. The
# answer is held here and in no file: on a full disk, an empty file would look like a job that is gone.
#
# Returns 0 with an answer (an empty one for a job that Slurm no longer knows), 2 where this Slurm keeps no accounts,
# 3 where it does not understand the question, 1 when it cannot be told. An error beside an empty answer is no answer.
ask() {
    local try code
    for try in 1 2 3; do
        code=0
        answer=$(timeout --kill-after=5 30 "$@" 2>"$scratch/complaint" </dev/null) || code=$?
        [ "$code" -ne 124 ] || printf 'no answer within 30 s\n' >>"$scratch/complaint"
        case $code/$(cat "$scratch/complaint") in
            *'Invalid job id'*) return 0 ;;
            *'accounting storage is disabled'* | *'supported accounting_storage plugin'*) return 2 ;;
            *'nrecognized option'* | *'nvalid option'* | *'nvalid field'*) return 3 ;;
            0/*error*) [ -z "$(reply)" ] || return 0 ;;
            0/*) return 0 ;;
        esac
        sleep "$try"
    done
    return 1
}

# A line that names a cluster answers nothing: squeue prints it also where the query failed.
reply() {
    printf '%s\n' "$answer" | sed '/^CLUSTER: /d'
}

complaint() {
    [ -s "$scratch/complaint" ] || printf 'nothing on stderr\n'
    tail -n 1 "$scratch/complaint"
}

# ask_queue JOB TOKEN CLUSTER: print what squeue says of the job: STATE|REASON|START|NODES; or gone, where it knows no such
# job (any more); unlisted, where it answered without that job; other|WHAT, where another job has that id; unknown, where
# it gave no answer. Returns what ask returned.
ask_queue() {
    local code=0 state why start nodes user folder command
    ask squeue ${3:+"--clusters=$3"} --noheader --states=all --jobs="$1" --format='%T|%r|%S|%N|%U|%Z|%o' || code=$?
    IFS='|' read -r state why start nodes user folder command <<<"$(reply | sed -nE '/^[A-Z_]+\|/p' | tail -n 1)"
    if [ "$code" -ne 0 ]; then
        printf 'unknown\n'
    elif [ -n "$state" ] && is_ours "$2" "$user" "$folder" "$command"; then
        printf '%s|%s|%s|%s\n' "$state" "$why" "$start" "$nodes"
    elif [ -n "$state" ]; then
        printf 'other|%s of user %s, %s\n' "$command" "$user" "$state"
    else
        case $(complaint) in *'Invalid job id'*) printf 'gone\n' ;; *) printf 'unlisted\n' ;; esac
    fi
    return "$code"
}

# is_ours TOKEN USER FOLDER COMMAND: ids come again, where a cluster lost its state. What we submit has the token in its
# path; a site may show another path, but then it is a job of this user from this work folder.
is_ours() {
    case $4 in
        *"/$1.slurm"*) return 0 ;;
        */submitted/*.slurm*) return 1 ;;
    esac
    [ "$2" = "$(id -u)" ] && [ "$3" -ef "$(at_home "$REMOTE_WORK")" ]
}

# is_over QUEUE: whether an answer of ask_queue says that our job is not there any more, or has ended.
is_over() {
    case ${1%%|*} in
        gone | other | COMPLETED | FAILED | CANCELLED | TIMEOUT | DEADLINE | OUT_OF_MEMORY | NODE_FAIL | BOOT_FAIL | PREEMPTED | REVOKED) return 0 ;;
        *) return 1 ;;
    esac
}

# cancel JOB TOKEN CLUSTER: scancel says yes to anything, so the job is looked at until it is over, for half a minute.
# Prints the last look; returns 1 when scancel refused.
cancel() {
    local pause queue=unknown
    scancel ${3:+"--clusters=$3"} "$1" 2>"$scratch/complaint" || return 1
    for pause in 1 1 2 3 5 8 10; do
        sleep "$pause"
        queue=$(ask_queue "$1" "$2" "$3") || continue
        ! is_over "$queue" || break
    done
    printf '%s\n' "$queue"
}

# find_by_token TOKEN [STATES]: print ID;CLUSTER of the job with this token, in one of the STATES where they are given, or
# nothing; 1 when it cannot be told. Slurm shows the path that was submitted, so a job is found even where nobody was left
# to note its id. (With headers, since they name the cluster where several are asked.)
find_by_token() {
    local line where='' found=''
    ask squeue --states="${2:-all}" --user="$(id -u)" --format='%i|%o' || return 1
    while IFS= read -r line; do
        case $line in
            'CLUSTER: '*) where=${line#CLUSTER: } ;;
            [0-9]*'|'*"/$1.slurm"*) found="${line%%|*};$where" ;;
        esac
    done <<<"$answer"
    printf '%s\n' "$found"
}
