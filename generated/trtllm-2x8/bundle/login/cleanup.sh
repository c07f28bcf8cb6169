# Cancel the jobs of this run that have not ended, wait until they are gone, and remove SCRIPTS_DIR.
#
# Runs on:  the login node, after login/slurm.sh
# Given:    jobs: TOKEN;ID;CLUSTER of each, separated by spaces; ID is empty where it was never noted
# Writes:   the queue: the jobs are cancelled; SCRIPTS_DIR: it is removed, and only when no job of this run is left;
#           a scratch folder, gone again when this ends
# Reports:  told=... for each thing done, or left alone
# Calls:    cat find flock id mktemp rm scancel sed sleep squeue tail timeout
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=slurm.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}" "${jobs?}"
alive=()

# look_at TOKEN ID CLUSTER: put the job among those that are alive, if it is.
look_at() {
    local queue
    queue=$(ask_queue "$2" "$1" "$3") || :
    case ${queue%%|*} in
        unknown | unlisted) cannot_tell "squeue gave no answer about job $2: $(complaint). Nothing was cancelled or removed" ;;
        other) report told "the id $2 belongs to another job now, which is left alone: ${queue#*|}" ;;
    esac
    is_over "$queue" || alive+=("$1;$2;$3")
}

# All are looked at before the first is cancelled. A job may be there whose id nobody noted.
look_at_all() {
    local item token job cluster found
    for item in $jobs; do
        IFS=';' read -r token job cluster <<<"$item"
        [ -z "$job" ] || look_at "$token" "$job" "$cluster"
        found=$(find_by_token "$token") || cannot_tell "squeue gave no answer: $(complaint). Nothing was cancelled or removed"
        [ -z "$found" ] || [ "${found%%;*}" = "$job" ] || look_at "$token" "${found%%;*}" "${found#*;}"
    done
}

cancel_all() {
    local item token job cluster queue
    for item in ${alive[@]+"${alive[@]}"}; do
        IFS=';' read -r token job cluster <<<"$item"
        queue=$(cancel "$job" "$token" "$cluster") || fail "scancel refused job $job: $(complaint)"
        case ${queue%%|*} in
            unknown | unlisted) cannot_tell "scancel was given job $job, and squeue does not say what became of it: $(complaint)" ;;
        esac
        is_over "$queue" || fail "job $job is still ${queue%%|*} after scancel"
        report told "job $job is cancelled"
    done
}

# check_locks FILE...: a submission whose line broke may still be at work.
check_locks() {
    local file code
    for file in "$@"; do
        [ -e "$file" ] || continue
        code=0
        flock --nonblock "$file" true 2>"$scratch/complaint" || code=$?
        [ "$code" -ne 1 ] && [ -z "$(find "${file%.lock}.busy" -mmin -20 2>"$scratch/complaint")" ] ||
            cannot_tell 'a step that submits is still at work there; try again in some minutes. Nothing was cancelled or removed'
    done
}

main() {
    local scripts
    scripts=$(at_home "$SCRIPTS_DIR")
    forget_options
    check_locks "$scripts"/submitted/*.lock
    look_at_all
    cancel_all
    if [ -d "$scripts" ]; then
        rm -rf -- "${scripts:?}" || fail "cannot remove $scripts"
        report told "$scripts is removed"
    fi
}

main </dev/null
