# Take in the files of the build or the job, and submit it, unless a job with the same token is there already.
#
# Runs on:  the login node, after login/lib.sh
# Given:    kind (build or job), token
# Reads:    a tar stream on stdin
# Writes:   SCRIPTS_DIR; the queue: one job is submitted; a scratch folder, gone again when this ends
# Reports:  job, cluster, out, err
# Calls:    cat chmod cp id mkdir mktemp mv paste rm sbatch sed sleep squeue tail tar timeout
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}" "${kind:?}" "${token:?}"
work=$(at_home "$REMOTE_WORK")
scripts=$(at_home "$SCRIPTS_DIR")
submitted=$scripts/submitted/$token.slurm

take_files() {
    mkdir -p "$scripts/log" "$scripts/submitted" 2>"$scratch/errors" || fail "cannot make $scripts: $(tail -n 1 "$scratch/errors")"
    tar -C "$scripts" -xf - --no-same-owner 2>"$scratch/errors" || fail "cannot write into $scripts: $(tail -n 1 "$scratch/errors")"
}

# find_job: put the id of the job with this token in $job, or nothing; 1 when it cannot be told.
find_job() {
    job=''
    [ ! -s "$submitted.id" ] || job=$(cat "$submitted.id")
    [ -n "$job" ] || job=$(find_by_token "$token")
}

choose_command() {
    case $kind in
        job)
            cp "$scripts/recipes/$BATCH_SCRIPT" "$submitted"
            command=("${JOB_OPTIONS[@]}" "$submitted")
            [ "${#JOB_ENVIRONMENT[@]}" -eq 0 ] || export "${JOB_ENVIRONMENT[@]}"
            export WORK_DIR="$work"
            logs=$work out=$OUT_LOG err=$ERR_LOG
            export "${PASS_ENV[@]}"
            ;;
    esac
    chmod +x "$submitted"
}

# Submit from the work folder: log names in the directives are relative to it.
submit() {
    local line code=0
    cd "$work" || fail "cannot enter $work"
    timeout 120 sbatch --parsable "${command[@]}" >"$scratch/out" 2>"$scratch/errors" </dev/null || code=$?
    if [ "$code" -ne 0 ]; then
        case $(cat "$scratch/errors") in
            *"unrecognized option '--parsable'"*)
                code=0
                timeout 120 sbatch "${command[@]}" >"$scratch/out" 2>"$scratch/errors" </dev/null || code=$?
                ;;
        esac
    fi
    line=$(sed -nE 's/^Submitted batch job ([0-9]+)( on cluster (.*))?$/\1;\3/; s/^([0-9]+)(;[A-Za-z0-9_.-]*)?$/\1\2/p' "$scratch/out" | tail -n 1)
    job=${line%%;*}
    case $line in *\;?*) cluster=${line#*;} ;; esac
    [ "$code" -eq 0 ] && [ -n "$job" ] || find_unanswered "$code"
}

# sbatch gave no id. A lost answer is no lost request: the job is looked for before anything is said.
find_unanswered() {
    local try reason
    reason=$(sed -n 's/^sbatch: error: //p' "$scratch/errors" | paste -s -d ';' -)
    reason=${reason:-$(tail -n 1 "$scratch/errors")}
    case $(cat "$scratch/errors") in
        *'timed out'* | *'Unable to contact'* | *'Zero Bytes'* | *'communication'* | '') ;;
        *) fail "sbatch refused: $reason" ;;
    esac
    for try in 1 2 3; do
        sleep $((try * 3))
        find_job && [ -n "$job" ] && return 0
    done
    cannot_tell "sbatch ended with $1 and no job id ($reason), and no job with the token $token is in the queue yet"
}

# name_log PATTERN: the file name that Slurm makes of a log pattern for this job.
name_log() {
    local name=${1//%%/$'\001'}
    name=${name//%[jA]/$job}
    name=${name//%u/$(id -un)}
    name=${name//%x/$JOB_NAME}
    printf '%s\n' "${name//$'\001'/%}"
}

main() {
    cluster=''
    forget_options
    take_files
    choose_command
    find_job || cannot_tell "before submitting, the queue has to be asked for a job with the token $token, and it did not answer: $(complaint)"
    [ -n "$job" ] || submit
    printf '%s\n' "$job" >"$submitted.id.new"
    mv "$submitted.id.new" "$submitted.id"
    report cluster "$cluster"
    report out "$logs/$(name_log "$out")"
    report err "$logs/$(name_log "$err")"
    report job "$job"
}

main
