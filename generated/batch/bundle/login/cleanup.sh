# Cancel the jobs of this run that have not ended, wait until they are gone, and remove SCRIPTS_DIR.
#
# Runs on:  the login node, after login/lib.sh
# Given:    jobs (ids), tokens (of jobs whose id may never have been noted), both separated by spaces; cluster
# Writes:   the queue: the jobs are cancelled; SCRIPTS_DIR: it is removed, and only when no job of this run is left;
#           a scratch folder, gone again when this ends
# Reports:  told=... for each thing done
# Calls:    cat id mktemp rm scancel sed sleep squeue tail timeout
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${jobs?}" "${tokens?}" "${cluster?}"

# find_state JOB: put its state in $job_state: empty when it has ended or is gone.
find_state() {
    ask squeue ${cluster:+"--clusters=$cluster"} --noheader --jobs="$1" --format=%T || cannot_tell "squeue gave no answer about job $1: $(complaint). Nothing was removed"
    job_state=$(reply | sed -n '/^[A-Z_]*$/p')
}

# scancel says yes to anything; so the job is looked at until it is gone.
cancel() {
    local try
    find_state "$1"
    [ -n "$job_state" ] || return 0
    scancel ${cluster:+"--clusters=$cluster"} "$1" || fail "scancel refused job $1"
    for try in 1 1 2 3 5 8 10; do
        sleep "$try"
        find_state "$1"
        if [ -z "$job_state" ]; then
            report told "job $1 is cancelled"
            return 0
        fi
    done
    fail "job $1 is still $job_state after scancel"
}

main() {
    local job token scripts
    forget_options
    for token in $tokens; do
        job=$(find_by_token "$token") || cannot_tell "squeue gave no answer: $(complaint). Nothing was removed"
        jobs="$jobs $job"
    done
    for job in $jobs; do
        cancel "$job"
    done
    scripts=$(at_home "$SCRIPTS_DIR")
    if [ -d "$scripts" ]; then
        rm -rf -- "${scripts:?}" || fail "cannot remove $scripts"
        report told "$scripts is removed"
    fi
}

main </dev/null
