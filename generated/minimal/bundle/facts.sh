# The facts about the end of a job, from whoever knows them: accounting, the controller, the job's own exit file.
#
# Runs on:  your machine (bash 3.2 or later); sourced together with watch.sh and proof.sh
# Reads:    the answers of the last look
# Writes:   .run/: slurm_state and the like
# Calls:    sed tail
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=remote.sh source=watch.sh source=proof.sh source=config.sh

state_there='' exit_there='' elapsed='' nodes='' source=''

# read_facts KIND: the state ($state_there) and the exit code that count, from the best $source that has them.
#
# The rows of the steps say only one thing more: that one ran out of memory, which can leave its job FAILED.
read_facts() {
    local id exit_file
    id=$(kept "$1.id")
    exit_file=$(answer exit)
    state_there='' exit_there='' elapsed='' nodes='' source=''
    take_row sacct "$(answers row | sed -n "s/^$id|//p" | tail -n 1)"
    take_row scontrol "$(answer control)"
    take_row squeue "$(answer queue | sed 's/|.*//')|||"
    case $exit_file in
        '0 '*) take_row exit 'COMPLETED|0:0||' ;;
        [1-9]*' '*) take_row exit "FAILED|${exit_file%% *}:0||" ;;
    esac
    case ${exit_there:-none}/$state_there/$exit_file in
        none/COMPLETED/0' '* | none/FAILED/[1-9]*) exit_there=${exit_file%% *}:0 ;; # squeue tells no exit code
    esac
    case $state_there/$(answers row) in FAILED/*'|OUT_OF_ME'*) state_there=OUT_OF_MEMORY ;; esac
}

# take_row SOURCE STATE|EXIT|ELAPSED|NODES: take a row that tells an end, unless a better source had one. sacct may write
# CANCELLED by 1000, and a + where it cut a word.
take_row() {
    local state exit_code time where
    [ -z "$state_there" ] || return 0
    IFS='|' read -r state exit_code time where <<<"$2"
    state=${state%% *}
    state=${state%+}
    case $state in
        COMPLETED | FAILED | CANCELLED | TIMEOUT | DEADLINE | NODE_FAIL | BOOT_FAIL | PREEMPTED | REVOKED) ;;
        OUT_OF_ME*) state=OUT_OF_MEMORY ;;
        *) return 0 ;;
    esac
    state_there=$state exit_there=$exit_code elapsed=$time nodes=$where source=$1
}

# looks_wanted KIND: how many looks in a row have to find the job over before these facts are believed. Slurm may start a
# job again; accounting may still learn who killed it; and a file system may show late what proves success.
looks_wanted() {
    case $state_there/$source/$(answer accounting) in
        //*) printf 5 ;;
        NODE_FAIL/* | BOOT_FAIL/* | PREEMPTED/* | REVOKED/*) printf 2 ;;
        FAILED/exit/off) printf 1 ;;
        FAILED/exit/*) printf 3 ;;
        COMPLETED/*) has_proof "$1" && printf 1 || printf 3 ;;
        *) printf 1 ;;
    esac
}

keep_facts() {
    keep slurm_state "$state_there"
    keep slurm_exit "$exit_there"
    keep elapsed "$elapsed"
    keep nodes "$nodes"
}
