# What the steps that reach the cluster share: running a script on the login node, and reading its answers.
#
# Runs on:  your machine (bash 3.2 or later); sourced after lib.sh
# Reads:    config.sh, login/lib.sh, login/slurm.sh, which it sends with those in login/ that it is given
# Writes:   .run/answers, .run/errors, .run/ssh_code
# Calls:    cat sed ssh tail tr
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=config.sh

: "${bundle:?}" "${state:?}" "${step:?}"

# connect: a shell on the login node.
connect() {
    ssh -T "${SSH_OPTIONS[@]}" "$SSH_HOST" bash -s
}

# on_login SCRIPT... [NAME=VALUE...]: run login/SCRIPT on the login node, with stdin as its data. Of several, only the last
# does something; the others hold what it needs.
#
# The script travels on the stdin of a plain `bash -s`, so nothing is quoted twice and any login shell will do. What it
# reports comes back as `@@gen name=value` lines, kept for `answer`; other output (banners, a talkative .bashrc) is not
# ours. Returns 0 when the script said that it reached its end, 1 when it stopped early, 13 when the line broke or Slurm
# gave no answer. The exit code of ssh says nothing: 255 may be its own, or that of what ran there.
on_login() {
    local item
    {
        cat "$bundle/config.sh" "$bundle/login/lib.sh" "$bundle/login/slurm.sh"
        for item in "$@"; do
            case $item in *=*) printf '%s=%q\n' "${item%%=*}" "${item#*=}" ;; esac
        done
        for item in "$@"; do
            case $item in *=*) ;; *) cat "$bundle/login/$item" ;; esac
        done
        cat -
    } | {
        connect 2>"$state/errors"
        printf '%s\n' $? >"$state/ssh_code"
    } | tr -d '\r' >"$state/answers" || : "told by answer end"
    case $(answer end) in
        0.) return 0 ;;
        *[0-9] | '' | "$CANNOT_TELL.") return "$CANNOT_TELL" ;;
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
    [ -n "$word" ] || word=$(last_words "$state/errors")
    printf '%s' "${word:-no word came back}"
}

# way_out: what to do about it, as far as the words of Slurm, of git or of a disk tell.
way_out() {
    local word then="run ./$step.sh again" remake='make the bundle again'
    case $(trouble_there) in
        *'invalid partition'*) word="Correct partition in the spec (sinfo there lists them), and $remake" ;;
        *'nvalid account'*) word="Correct account in the spec (sacctmgr show associations there lists yours), and $remake" ;;
        *'nvalid qos'*) word="Correct qos in the spec (sacctmgr show qos there lists them), and $remake" ;;
        *'time limit'*) word="Lower the time limit in the spec (sinfo --format='%P %l' there lists the highest), and $remake" ;;
        *'ode count'* | *'node configuration'* | *'More processors'*) word="Ask for less in the spec (sinfo --Node --long there lists the nodes), and $remake" ;;
        *'unrecognized option'* | *'invalid option'*) word="Correct sbatch_options in the spec, and $remake" ;;
        *'Permission denied ('*) word="Give the login node a key that the repository knows (try there: git ls-remote $REPO_URL), and $then" ;;
        *'No space left'* | *'unable to write'* | *'write error'* | *'Wrote only'* | *'uota exceeded'*) word="Make room there (df -h, quota), and $then" ;;
        *'Read-only file system'* | *': Permission denied'* | *'Not a directory'* | *'name too long'*) word="Give a place that you can write to in the spec, and $remake" ;;
        *'failed to run'*) word="Have it installed there, and $then" ;;
        *'cannot clone'* | *'cannot fetch'*) word="The login node has to reach the repository by itself (try there: git ls-remote $REPO_URL); mend that and $then" ;;
        *) word="Mend that and $then" ;;
    esac
    printf '%s' "$word"
}

# expect_end CODE RESULT [WORD]: stop unless RESULT, what on_login returned, is 0. CODE is for a script that failed; WORD
# is what else has to be known then.
expect_end() {
    case $2 in
        0) ;;
        "$CANNOT_TELL")
            die "$CANNOT_TELL" "no answer from $SSH_HOST: $(trouble_there). Nothing was concluded; run ./$step.sh again."
            ;;
        *) die "$1" "on $SSH_HOST: $(trouble_there). ${3:+$3 }$(way_out)." ;;
    esac
}
