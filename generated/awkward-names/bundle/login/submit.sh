# Take in the files of the build or the job, and submit it, unless a job with the same token is there already.
#
# Runs on:  the login node, after login/once.sh
# Given:    kind (build or job), token
# Reads:    a tar stream on stdin
# Writes:   SCRIPTS_DIR; the queue: one job is submitted; a scratch folder, gone again when this ends
# Reports:  job, out, err, and what login/once.sh reports
# Calls:    cat chmod cp date find flock id mkdir mktemp mv paste rm rmdir sbatch sed sleep sort squeue tail tar timeout tr wc
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=slurm.sh source=once.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}" "${kind:?}" "${work:?}" "${submitted:?}"
scripts=$(at_home "$SCRIPTS_DIR")

# A stream that was cut off lacks the empty blocks that end every tar archive; half of it is not unpacked.
take_files() {
    cat >"$scratch/files"
    [ "$(tail -c 1024 "$scratch/files" | tr -d '\000' | wc -c)" -eq 0 ] || cannot_tell 'the files did not arrive whole. Nothing was submitted'
    mkdir -p "$scripts/log" "$scripts/submitted" 2>"$scratch/errors" || fail "cannot make $scripts: $(tail -n 1 "$scratch/errors")"
    tar -C "$scripts" -xf "$scratch/files" --no-same-owner 2>"$scratch/errors" || fail "cannot write into $scripts: $(sed -n 1p "$scratch/errors")"
}

choose_command() {
    # What lib.sh has set for the commands here is not for the job, which is given the environment of this shell.
    unset LC_ALL GIT_TERMINAL_PROMPT GIT_SSH_COMMAND
    case $kind in
        build)
            script=$scripts/build.slurm
            command=("$submitted" "$(at_home "$ENROOT_IMAGE")" "$(at_home "$USER_ROOT")" "$scripts" "$(at_home "$REMOTE_REPO")" ${BUILD_ARGUMENTS[@]+"${BUILD_ARGUMENTS[@]}"})
            logs=$scripts/log out=build_%j.srun.log err=build_%j.out
            ;;
        job)
            script=$scripts/recipes/job.slurm
            command=("$submitted")
            logs=$work out=$OUT_LOG err=$ERR_LOG
            ;;
    esac
}

# name_log PATTERN JOB: the file name that Slurm makes of a log pattern for this job.
name_log() {
    local name=${1//%%/$'\001'}
    name=${name//%[jA]/$2}
    name=${name//%u/"$(id -un)"}
    name=${name//%x/"$JOB_NAME"}
    printf '%s\n' "${name//$'\001'/%}"
}

main() {
    local job
    forget_options
    take_files
    choose_command
    submit_once "$script" "${command[@]}"
    job=$(sed 's/;.*//' "$submitted.id")
    report out "$logs/$(name_log "$out" "$job")"
    report err "$logs/$(name_log "$err" "$job")"
    report job "$job"
}

main
