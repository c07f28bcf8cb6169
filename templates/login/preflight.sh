# Look for what the run needs on the cluster; one report for each thing that is missing.
#
# Runs on:  the login node, after login/lib.sh
{% if create_remote_cwd %}
# Writes:   REMOTE_CWD, where it is missing
{% endif %}
# Reports:  user, host, slurm; missing=... for each thing that is missing; error=... if anything is
# Calls:    hostname id mkdir scontrol squeue
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

missing=0

miss() {
    report missing "$*"
    missing=$((missing + 1))
}

check_commands() {
    local name
    for name in sbatch squeue scancel scontrol srun; do
        command -v "$name" >/dev/null || miss "$name is not on the PATH of a plain ssh command; name what sets Slurm up in remote_init (such as: module load slurm)"
    done
    for name in git tar; do
        command -v "$name" >/dev/null || miss "$name is not installed, or not on the PATH of a plain ssh command"
    done
}

check_folder() {
    local cwd
    cwd=$(at_home "$REMOTE_CWD")
{% if create_remote_cwd %}
    mkdir -p "$cwd" || miss "$cwd cannot be made; correct remote_cwd"
{% else %}
    [ -d "$cwd" ] || miss "$cwd is not there; make it, correct remote_cwd, or set create_remote_cwd in the spec"
{% endif %}
    [ ! -d "$cwd" ] || [ -w "$cwd" ] || miss "$cwd cannot be written to; correct remote_cwd"
}

main() {
    forget_options
    report user "$(id -un)"
    report host "$(hostname)"
    check_commands
    check_folder
    [ "$missing" -eq 0 ] || fail "$missing of the things above missing"
    ask squeue --version || fail "squeue --version gave no answer: $(complaint)"
    report slurm "$(reply)"
    ask scontrol show config || return 0 # no more than a word depends on it
    case $(reply) in *accounting_storage/none*) report accounting off ;; esac
}

main </dev/null
