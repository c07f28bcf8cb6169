# The facts about the end of a job, from whoever knows them: accounting, the controller, the job's own exit file.
#
# Runs on:  your machine (bash 3.2 or later); sourced after jobs.sh
# Reads:    the answers of the last look
# Writes:   .run/: slurm_state and the like
# Calls:    sed sleep tail
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=jobs.sh source=config.sh

state_there='' exit_there='' elapsed='' nodes='' exit_file=''

# read_facts KIND: the state ($state_there) and exit code that count, from the best source that has them.
#
# sacct's own row of the job, where it tells an end (accounting may lag behind), else scontrol's, else the job script's
# exit file. The rows of the steps say only one thing more: that one ran out of memory, which Slurm may call FAILED.
read_facts() {
    local id row
    id=$(kept "$1.id")
    exit_file=$(answer exit)
    row=$(answers row | sed -nE "/^$id\|(PENDING|RUNNING|REQUEUED|RESIZING|SUSPENDED|COMPLETING)/!{/^$id\|/p;}" | tail -n 1)
    [ -n "$row" ] || row="$id|$(answer control)"
    IFS='|' read -r id state_there exit_there elapsed nodes <<<"$row"
    state_there=${state_there%% *}
    state_there=${state_there%+}
    case $(answers row) in *'|OUT_OF_ME'*) state_there=OUT_OF_MEMORY ;; esac
    if [ -z "$state_there" ] && [ -n "$exit_file" ]; then
        exit_there=${exit_file%% *}:0
        [ "$exit_there" = 0:0 ] && state_there=COMPLETED || state_there=FAILED
    fi
}

# settle KIND: read the facts, and look again for a while where nobody knows them yet.
settle() {
    local pause
    for pause in 1 2 4 8; do
        read_facts "$1"
        [ -z "$state_there" ] || return 0
        sleep $((pause * POLL_SECONDS))
        look "$1" || say "no answer: $(trouble_there)"
    done
}

keep_facts() {
    keep slurm_state "$state_there"
    keep slurm_exit "$exit_there"
    keep elapsed "$elapsed"
    keep nodes "$nodes"
}
