# Look for what the run needs on the cluster; one report for each thing that is missing.
#
# Runs on:  the login node, after login/lib.sh
# Writes:   a scratch folder, gone again when this ends
# Reports:  user, host, slurm; missing=... for each thing that is missing; accounting=off; error=... if Slurm does not answer
# Calls:    cat hostname id mktemp rm scontrol sed sleep squeue tail timeout
# Expects:  git sbatch scancel srun tar, to be installed
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}"
missing=''

miss() {
    report missing "$*"
    missing=yes
}

# find_absent COMMAND...: those of them that there are not, into $absent.
find_absent() {
    local name
    absent=''
    for name in "$@"; do
        command -v "$name" >/dev/null || absent="$absent $name"
    done
}

check_commands() {
    find_absent sbatch squeue scancel scontrol srun
    [ -z "$absent" ] || miss "no$absent on the PATH of a plain ssh command; name what sets Slurm up in remote_init (such as: module load slurm)"
    find_absent git tar
    [ -z "$absent" ] || miss "no$absent on the PATH of a plain ssh command; have it installed, or name what sets it up in remote_init"
}

check_folder() {
    local cwd
    cwd=$(at_home "$REMOTE_CWD")
    [ -d "$cwd" ] || miss "$cwd is not there; make it, or correct remote_cwd or set create_remote_cwd in the spec"
    [ ! -d "$cwd" ] || [ -w "$cwd" ] || miss "$cwd cannot be written to; correct remote_cwd in the spec"
}

main() {
    forget_options
    report user "$(id -un)"
    report host "$(hostname)"
    check_commands
    check_folder
    [ -z "$missing" ] || exit 1
    ask squeue --version || fail "squeue --version gave no answer: $(complaint)"
    report slurm "$(reply)"
    ask scontrol show config || return 0 # no more than a word depends on it
    case $(reply) in *accounting_storage/none*) report accounting off ;; esac
}

main </dev/null
