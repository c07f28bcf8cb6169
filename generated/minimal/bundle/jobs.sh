# What submit_build.sh, submit.sh and monitor.sh share: submitting a job once, and watching it to its end.
#
# Runs on:  your machine (bash 3.2 or later); sourced after lib.sh
# Reads:    login/submit.sh, login/poll.sh
# Writes:   .run/: KIND.id and the like, KIND being build or job
# Calls:    date sleep tar
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=config.sh

: "${bundle:?}" "${step:?}"
queue='' end='' progress=''

# submit_once KIND FILE...: send FILEs of the bundle and submit the build or the job with them, unless that was done.
#
# The token is kept before anything is sent. Where an answer got lost, the next try finds the job by its token.
submit_once() {
    local kind=$1 code=0 name
    shift
    if [ -n "$(kept "$kind.id")" ]; then
        say "$kind $(kept "$kind.id") was submitted before; not submitted again"
        return
    fi
    [ -n "$(kept "$kind.token")" ] || keep "$kind.token" "$BUNDLE_ID-$(date -u +%Y%m%d%H%M%S)-$$"
    COPYFILE_DISABLE=1 tar -C "$bundle" -cf - "$@" |
        on_login submit.sh "kind=$kind" "token=$(kept "$kind.token")" ${secrets+"${secrets[@]}"} || code=$?
    expect_end 7 "$code" "Nothing was submitted. Mend that and run ./$step.sh again."
    for name in cluster out err; do
        keep "$kind.$name" "$(answer $name)"
    done
    keep "$kind.id" "$(answer job)"
    say "$kind $(kept "$kind.id"): submitted; its log is $(kept "$kind.out") on $SSH_HOST"
}

# look KIND: one round trip: state in the queue, new bytes of the logs, and what is known of the end.
look() {
    local kind=$1 code=0
    on_login poll.sh "kind=$kind" "job=$(kept "$kind.id")" "cluster=$(kept "$kind.cluster")" \
        "out=$(kept "$kind.out")" "err=$(kept "$kind.err")" "out_seen=$out_seen" "err_seen=$err_seen" </dev/null || code=$?
    [ "$code" -eq 0 ] || return "$code"
    queue=$(answer queue)
    [ "${#HANG_PATTERNS[@]}" -eq 0 ] || out_seen=$(answer out_seen) err_seen=$(answer err_seen)
}

# tell_change KIND: say what is new since the last look: another state, reason to wait, or line of progress.
tell_change() {
    local now="${queue%%|*}" rest reason start
    rest=${queue#*|}
    reason=${rest%%|*}
    start=${rest#*|}
    case $now in
        PENDING) now="PENDING ($reason; estimated start: ${start%%|*})" ;;
        RUNNING) now="RUNNING${progress:+: $progress}" ;;
    esac
    [ "$now" = "$told" ] || say "$1 $(kept "$1.id"): $now"
    told=$now
    [ "${queue%%|*}" != PENDING ] || warn_stuck "$1" "$reason"
}

# warn_stuck KIND REASON: say once that a job waits for something that waiting does not bring.
warn_stuck() {
    case $2 in
        PartitionTimeLimit | PartitionNodeLimit | PartitionConfig | BadConstraints | DependencyNeverSatisfied) ;;
        JobHeld* | Invalid* | AssocMax* | QOSMax*PerJob* | ReqNodeNotAvail*) ;;
        *) return 0 ;;
    esac
    [ "$2" = "$warned" ] || say "$1 $(kept "$1.id") will not start as it is: $2. Cancel it with ./cleanup.sh and change the spec, or ask the site"
    warned=$2
}

# watch KIND SECONDS: look again and again until the end is known, a hang is found or SECONDS are over.
#
# Sets $end to ended, hang, timeout or lost. A look without an answer concludes nothing: the next one may have it.
watch() {
    local kind=$1 seconds=$2 began silent_since=0 pause=$POLL_SECONDS now
    out_seen=0 err_seen=0 told='' warned='' end=''
    began=$(date +%s)
    while :; do
        if look "$kind" && [ "${queue%%|*}" != unknown ]; then
            silent_since=0
            progress=$(answer progress)
            tell_change "$kind"
            [ -z "$(answer hang)" ] || end=hang
            [ -z "$(answer ended)" ] || end=${end:-ended}
        else
            now=$(date +%s)
            [ "$silent_since" -ne 0 ] || silent_since=$now
            say "no answer about $kind $(kept "$kind.id"): $(trouble_there). Nothing is concluded; asking again"
            [ $((now - silent_since)) -lt "$PATIENCE_SECONDS" ] || end=lost
        fi
        [ $(($(date +%s) - began)) -lt "$seconds" ] || end=${end:-timeout}
        [ -z "$end" ] || return 0
        sleep "$pause"
        pause=$((pause * 3 / 2 > POLL_SECONDS_MAX ? POLL_SECONDS_MAX : pause * 3 / 2))
        [ "${queue%%|*}" != RUNNING ] || [ "$pause" -le 60 ] || pause=60
    done
}
