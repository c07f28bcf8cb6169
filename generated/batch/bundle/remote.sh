# What the steps that reach the cluster share: running a script on the login node, and reading its answers.
#
# Runs on:  your machine (bash 3.2 or later); sourced after lib.sh
# Reads:    config.sh, login/lib.sh, login/init.sh, which it sends with one of the scripts in login/
# Writes:   .run/answers, .run/errors
# Calls:    cat sed ssh tail tr
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=config.sh

: "${bundle:?}" "${state:?}" "${step:?}"
readonly CANNOT_TELL=13

# connect: a shell on the login node, over the connection that preflight.sh found: yours, or the managed one.
connect() {
    local own
    own=$(kept control_path)
    ssh -T ${own:+-o "ControlPath=$own"} "${SSH_OPTIONS[@]}" "$SSH_HOST" bash -s
}

# on_login SCRIPT [NAME=VALUE...]: run login/SCRIPT on the login node, with stdin as its data.
#
# The script travels on the stdin of a plain `bash -s`, so nothing is quoted twice and any login shell will do. What it
# reports comes back as `@@gen name=value` lines, kept for `answer`; other output (banners, a talkative .bashrc) is not
# ours. Returns 0 when the script said that it reached its end, 1 when it stopped early, 13 when the line broke or Slurm
# gave no answer.
on_login() {
    local script=$1 assignment
    shift
    {
        cat "$bundle/config.sh" "$bundle/login/lib.sh" "$bundle/login/init.sh"
        for assignment in "$@"; do
            printf '%s=%q\n' "${assignment%%=*}" "${assignment#*=}"
        done
        cat "$bundle/login/$script" -
    } | connect 2>"$state/errors" | tr -d '\r' >"$state/answers" || : "told by answer end"
    case $(answer end) in
        0) return 0 ;;
        '' | "$CANNOT_TELL") return "$CANNOT_TELL" ;;
        *) return 1 ;;
    esac
}

# answer NAME: the last value that the login script gave for NAME, or nothing; answers NAME: all of them, a line each.
answer() {
    answers "$1" | tail -n 1
}

answers() {
    sed -n "s/^@@gen $1=//p" "$state/answers"
}

# trouble_there: why a script on the login node stopped: its own word, else the last thing on stderr.
trouble_there() {
    local word
    word=$(answer error)
    [ -n "$word" ] || word=$(tail -n 1 "$state/errors")
    printf '%s' "${word:-no word came back}"
}

# expect_end CODE RESULT ADVICE: stop unless RESULT, what on_login returned, is 0. CODE is for a script that failed.
expect_end() {
    case $2 in
        0) ;;
        "$CANNOT_TELL")
            die "$CANNOT_TELL" "no answer from $SSH_HOST: $(trouble_there). Nothing was concluded; run ./$step.sh again."
            ;;
        *) die "$1" "on $SSH_HOST: $(trouble_there). $3" ;;
    esac
}
