# Submitting once: no job with our token is there, or it is found; and what sbatch said is understood, or not believed.
#
# Runs on:  the login node, after login/slurm.sh and before login/submit.sh
# Given:    kind (build or job), token
# Writes:   SCRIPTS_DIR/submitted: TOKEN.slurm, which is submitted, beside it TOKEN.slurm.id, the id of the job, and
#           TOKEN.slurm.lock or, while this is at work, TOKEN.slurm.busy
# Reports:  said=... for each line that sbatch said besides the id; refused=yes where Slurm took no job; cluster; since,
#           which is when it was submitted
# Calls:    cat chmod cp date find flock id mkdir mv paste rmdir sacct sbatch sed sleep sort tail timeout tr
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=slurm.sh source=../config.sh

: "${scratch:?}" "${kind:?}" "${token:?}"
readonly ID_LINE='^(Submitted batch job )?([0-9]+)((;| on cluster )([A-Za-z0-9_.-]+))?$'
work=$(at_home "$REMOTE_WORK")
submitted=$(at_home "$SCRIPTS_DIR")/submitted/$token.slurm

# An earlier call may still be at work here, though its line broke: it is waited for. A lock ends with whoever has it.
take_lock() {
    local code=0
    exec 9>"$submitted.lock"
    flock --timeout 150 9 2>"$scratch/complaint" || code=$?
    case $code in
        0) ;;
        1) cannot_tell 'an earlier call of this step is still at work there; try again in some minutes' ;;
        *) take_folder ;;
    esac
}

# Where the file system has no locks, a folder is one, and that of a call that was killed is old.
take_folder() {
    [ -z "$(find "${submitted%/*}" -name "$token.slurm.busy" -mmin +20)" ] || rmdir "$submitted.busy"
    mkdir "$submitted.busy" 2>"$scratch/complaint" ||
        cannot_tell "an earlier call of this step is still at work there, or was killed; try again in some minutes ($(complaint))"
    trap 'code=$?; rmdir "$submitted.busy"; leave "$code"' EXIT
}

# find_job [STATES]: put the id of the job with this token in $job, or nothing; 1 when it cannot be told. The id was noted
# here by an earlier call, is in the queue (there in one of the STATES), or was noted by the job itself when it started.
find_job() {
    local states=${1-} found=''
    job='' cluster=''
    [ ! -s "$submitted.id" ] || found=$(cat "$submitted.id")
    [ -n "$found" ] || found=$(find_by_token "$token" "$states") || return 1
    [ -n "$found" ] || [ ! -s "$submitted.ran" ] || found=$(cat "$submitted.ran")
    [ -n "$found" ] || [ "$kind" = build ] || [ -n "$states" ] || found=$(find_in_accounting) || return 1
    job=${found%%;*}
    case $found in *\;*) cluster=${found#*;} ;; esac
}

# Your own script notes nothing. Where it was submitted before and is not in the queue any more, accounting has to say.
find_in_accounting() {
    [ -e "$submitted" ] || return 0
    ask sacct --noheader --parsable2 --allocations --user="$(id -u)" --format=JobID,SubmitLine \
        --starttime="$(date -d "@$(($(date -r "$submitted" +%s) - 300))" +%Y-%m-%dT%H:%M:%S)" || return 1
    reply | sed -n "s#^\([0-9]*\)|.*/$token\.slurm.*#\1#p" | tail -n 1
}

call_sbatch() {
    timeout --kill-after=5 120 sbatch "$@" >"$scratch/out" 2>"$scratch/errors" </dev/null
}

# submit SCRIPT ARGUMENT...: from the work folder, as log names in the directives are relative to it. By GEN_NOTE the job
# can note its id itself.
submit() {
    local script=$1 code=0
    shift
    cp "$script" "$submitted"
    chmod +x "$submitted"
    cd "$work" || fail "cannot enter $work"
    export GEN_NOTE=$submitted.ran
    call_sbatch --parsable "$@" || code=$?
    case $code/$(cat "$scratch/errors") in
        0/*) ;;
        *'unrecognized option'*--parsable*)
            code=0
            call_sbatch "$@" || code=$?
            ;;
    esac
    read_id
    [ "$code" -eq 0 ] && [ -n "$job" ] || find_unanswered "$code"
    cat "$scratch/errors" "$scratch/out" | tr -d '\000-\010\013-\037\177' | sed -E "/^$|$ID_LINE/d; s/^/@@gen said=/; 9q"
}

# read_id: the id that sbatch printed, and the cluster. Where two lines could be one, neither is believed.
read_id() {
    local found
    found=$(tr -d '\r' <"$scratch/out" | sed -nE "s/$ID_LINE/\2;\5/p" | sort -u)
    case $found in *$'\n'*) found='' ;; esac
    job=${found%%;*} cluster=${found#*;}
}

# find_unanswered CODE: sbatch gave no id. A lost answer is no lost request, so the job is looked for; where the words are
# those of a lost answer, for some time.
find_unanswered() {
    local pause reason pauses=0 looked=yes states=''
    reason=$(sed -nE 's/^sbatch: (error: )?//p' "$scratch/errors" | paste -s -d ';' - | sed 's/;/; /g')
    reason=${reason:-$(tail -n 1 "$scratch/errors")}
    case $1/$reason in
        0/* | */ | *'timed out'* | *'ontact'* | *'Zero Bytes'* | *'onnect'* | *'ommunication'* | *'essage'* | *'eader'*) pauses='3 6 9' ;;
        *'submission failed'*) states=PENDING,RUNNING,SUSPENDED,COMPLETING,COMPLETED ;; # Slurm may list what it refused as FAILED
    esac
    for pause in $pauses; do
        sleep "$pause"
        looked=yes
        find_job "$states" || looked=no
        [ -z "$job" ] || return 0
    done
    reason=${reason:-it ended with $1 and printed: $(paste -s -d ';' "$scratch/out")}
    [ "$looked" = yes ] || cannot_tell "sbatch gave no job id ($reason), and whether there is a job cannot be told: $(complaint)"
    [ "${#pauses}" -le 1 ] || cannot_tell "sbatch gave no job id ($reason), and no job with the token $token is in the queue yet"
    report refused yes
    fail "sbatch refused: $reason"
}

# submit_once SCRIPT ARGUMENT...: give ARGUMENTs to sbatch, after SCRIPT is where they say, unless it has the job already.
submit_once() {
    local since=0
    take_lock
    find_job || cannot_tell "before submitting, the queue has to be asked for a job with the token $token, and it did not answer: $(complaint)"
    [ -n "$job" ] || submit "$@"
    printf '%s;%s\n' "$job" "$cluster" >"$submitted.id.new"
    mv "$submitted.id.new" "$submitted.id"
    report cluster "$cluster"
    [ ! -e "$submitted" ] || since=$(date -r "$submitted" +%s)
    report since "$since"
}
