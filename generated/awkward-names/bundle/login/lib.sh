# What the login scripts share: reporting, failing, the home directory, and asking Slurm.
#
# Runs on:  the login node (bash 4.2 or later), between config.sh and one of the scripts beside it
# Writes:   a scratch folder, gone again when this ends
# Reports:  end=CODE when the script ends, however it ends
# Calls:    cat id mktemp rm sed sleep squeue tail timeout
#
# shellcheck shell=bash

set -euo pipefail
export LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=15'
printf '\n'

# report NAME VALUE: an answer for the side that asked; nothing else on stdout counts.
report() {
    printf '@@gen %s=%s\n' "$1" "$2"
}

leave() {
    rm -rf "$scratch"
    report end "$1"
}

trap 'report end $?' EXIT
scratch=$(mktemp -d)
trap 'leave $?' EXIT

# fail WHAT...: stop, since something is wrong; cannot_tell WHAT...: stop, since nobody answered (CANNOT_TELL on the other side).
fail() {
    report error "$*"
    exit 1
}

cannot_tell() {
    report error "$*"
    exit 13
}

# at_home PATH: PATH with a leading ~ made into the home directory here.
at_home() {
    case $1 in
        \~ | \~/*) printf '%s\n' "$HOME${1#\~}" ;;
        *) printf '%s\n' "$1" ;;
    esac
}

# What was reviewed is what counts: no option of a Slurm command comes from the environment of this shell.
forget_options() {
    local name
    for name in "${!SLURM_@}" "${!SBATCH_@}" "${!SRUN_@}" "${!SALLOC_@}" "${!SQUEUE_@}" "${!SACCT_@}" "${!SINFO_@}" "${!SCANCEL_@}" "${!PYXIS_@}"; do
        case $name in
            SLURM_CONF | SLURM_CLUSTERS) ;;
            *) unset "$name" ;;
        esac
    done
}

# ask COMMAND...: have Slurm answer, with up to three tries; reply prints the answer, complaint what stderr said last.
#
# Returns 0 with an answer (an empty one for a job that Slurm no longer knows), 2 where this Slurm keeps no accounts,
# 1 when it cannot be told.
ask() {
    local try
    for try in 1 2 3; do
        ! timeout 30 "$@" >"$scratch/reply" 2>"$scratch/complaint" </dev/null || return 0
        case $(complaint) in
            *'Invalid job id'*) return 0 ;;
            *'accounting storage is disabled'*) return 2 ;;
        esac
        sleep "$try"
    done
    return 1
}

# find_by_token TOKEN: print the id of the job with this token, or nothing; 1 when it cannot be told. Slurm shows the
# path that was submitted, and that path holds the token: so a job is found even where nobody was left to note its id.
find_by_token() {
    ask squeue --noheader --states=all --user="$(id -un)" --format='%i|%T|%o' || return 1
    reply | sed -n "s#^\([0-9]*\)|.*/$1\.slurm.*#\1#p" | tail -n 1
}

reply() {
    cat "$scratch/reply"
}

complaint() {
    tail -n 1 "$scratch/complaint"
}
