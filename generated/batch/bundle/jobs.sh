# What submit_build.sh and submit.sh share: submitting a job, once.
#
# Runs on:  your machine (bash 3.2 or later); sourced after remote.sh
# Reads:    login/once.sh, login/submit.sh
# Writes:   .run/: KIND.id and the like, KIND being build or job
# Calls:    date rm tar
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=remote.sh source=config.sh

: "${bundle:?}" "${state:?}" "${step:?}"

# submit_once KIND FILE...: send FILEs of the bundle and submit the build or the job with them, unless that was done.
#
# The token is kept before anything is sent. Where an answer got lost, the next try finds the job by its token.
submit_once() {
    local kind=$1 code=0
    shift
    if [ -n "$(kept "$kind.id")" ]; then
        say "$kind $(kept "$kind.id") was submitted before; not submitted again"
        return
    fi
    [ -n "$(kept "$kind.token")" ] || keep "$kind.token" "$BUNDLE_ID-$(date -u +%Y%m%d%H%M%S)-$$"
    { COPYFILE_DISABLE=1 tar -C "$bundle" -cf - "$@" || say "tar could not read all of: $*"; } |
        on_login once.sh submit.sh "kind=$kind" "token=$(kept "$kind.token")" ${secrets+"${secrets[@]}"} || code=$?
    [ -z "$(answer refused)" ] || rm -f "$state/$kind.token"
    expect_end 7 "$code" 'Nothing was submitted.'
    take_answer "$kind"
    say "$kind $(kept "$kind.id"): submitted; its log is $(kept "$kind.out") on $SSH_HOST"
}

# take_answer KIND: keep what the login node says of the job. The id comes last: with it, the job counts as submitted.
take_answer() {
    local name line
    answers said | while IFS= read -r line; do
        say "sbatch says: $line"
    done
    case $(answer job) in
        '' | *[!0-9]*) die "$CANNOT_TELL" "the login node gave '$(answer job)' for a job id. Nothing was concluded; run ./$step.sh again." ;;
    esac
    for name in cluster since out err; do
        keep "$1.$name" "$(answer $name)"
    done
    keep "$1.id" "$(answer job)"
}
