# What submit_build.sh and monitor.sh share: watching a job to its end. A look without an answer concludes nothing.
#
# Runs on:  your machine (bash 3.2 or later); sourced after remote.sh, together with facts.sh
# Reads:    login/end.sh, login/poll.sh, .run/KIND.id and the like, KIND being build or job
# Calls:    date sleep
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=remote.sh source=facts.sh source=config.sh

queue='' end='' progress='' hopeless=''

# look KIND: one round trip: state in the queue, new bytes of the logs, and what is known of the end.
look() {
    local kind=$1 code=0
    on_login end.sh poll.sh "kind=$kind" "job=$(kept "$kind.id")" "cluster=$(kept "$kind.cluster")" \
        "token=$(kept "$kind.token")" "since=$(kept "$kind.since")" \
        "out=$(kept "$kind.out")" "err=$(kept "$kind.err")" "out_seen=$out_seen" "err_seen=$err_seen" </dev/null || code=$?
    hopeless=$(answer hopeless)
    [ "$code" -eq 0 ] || return "$code"
    queue=$(answer queue)
    progress=$(answer progress)
    [ "${#HANG_PATTERNS[@]}" -eq 0 ] || out_seen=$(answer out_seen) err_seen=$(answer err_seen)
}

# tell_change KIND: say what is new since the last look: another state, reason to wait, or line of progress.
tell_change() {
    local word=${queue%%|*} rest reason start now
    rest=${queue#*|}
    reason=${rest%%|*}
    start=${rest#*|}
    case $was/$word in
        RUNNING/PENDING | COMPLETING/PENDING | over/*)
            restarts=$((restarts + 1))
            say "$1 $(kept "$1.id") was requeued (restart $restarts): Slurm runs it again, under the same id"
            ;;
    esac
    was=$word
    case $word in
        PENDING) now="PENDING ($reason; estimated start: ${start%%|*})" ;;
        RUNNING) now="RUNNING${progress:+: $progress}" ;;
        *) now=$word ;;
    esac
    [ "$now" = "$told" ] || say "$1 $(kept "$1.id"): $now"
    told=$now
    warn_held "$1" "$word" "$reason"
}

# warn_held KIND STATE REASON: say once that a job waits for something that waiting does not bring, or ends slowly.
warn_held() {
    local id what=''
    id=$(kept "$1.id")
    [ "$2" = COMPLETING ] || completing_since=''
    case $2/$3 in
        COMPLETING/*)
            completing_since=${completing_since:-$(date +%s)}
            [ $(($(date +%s) - completing_since)) -lt "$SLOW_END_SECONDS" ] ||
                what="has been COMPLETING for more than $SLOW_END_SECONDS s: its nodes are slow to clean up. Still waiting; if it stays so, ask the site"
            ;;
        */*[Hh]eld* | *HOLD/* | SPECIAL_EXIT/*) what="will not start as it is: $3. It is held; release it on $SSH_HOST with: scontrol release $id, or cancel it with ./cleanup.sh" ;;
        PENDING/PartitionTimeLimit | PENDING/PartitionNodeLimit | PENDING/PartitionConfig | PENDING/BadConstraints | PENDING/DependencyNeverSatisfied | \
            PENDING/Invalid* | PENDING/AssocMax*Per* | PENDING/QOSMax*PerJob* | PENDING/QOSMax*PerNode* | PENDING/QOSMin* | PENDING/ReqNodeNotAvail*)
            what="will not start as it is: $3. Cancel it with ./cleanup.sh and change the spec, or ask the site"
            ;;
    esac
    [ "$what" = "$warned" ] || [ -z "$what" ] || say "$1 $id $what"
    warned=$what
}

# weigh KIND: what an answer means for the watch. That a job is over counts as its end when the facts say how it ended, or
# when nobody has known it for looks_wanted looks in a row.
weigh() {
    silent_since=''
    if [ -z "$(answer over)" ]; then
        looks=0
        tell_change "$1"
        [ -z "$(answer hang)" ] || end=hang
        return
    fi
    looks=$((looks + 1)) was=over
    read_facts "$1"
    if [ -n "$(answer hang)" ]; then
        end=hang
    elif [ "$looks" -ge "$(looks_wanted "$1")" ]; then
        end=ended
    else
        say "$1 $(kept "$1.id") is ${state_there:-not in the queue any more, and how it ended is not known yet}; looking once more before that is believed"
    fi
}

# bear KIND: nothing was heard. Say so, and give up after PATIENCE_SECONDS, or where asking again is of no use.
bear() {
    local now
    now=$(date +%s)
    silent_since=${silent_since:-$now}
    [ -z "$hopeless" ] && [ $((now - silent_since)) -lt "$PATIENCE_SECONDS" ] || end=lost
    [ -n "$end" ] || say "no answer about $1 $(kept "$1.id"): $(trouble_there). Nothing is concluded; asking again"
}

# watch KIND SECONDS: look again and again until the end is known, a hang is found or SECONDS are over.
#
# Sets $end to ended, hang, timeout or lost (which is: nobody answers).
watch() {
    local began pause=$POLL_SECONDS
    out_seen=0 err_seen=0 told='' was='' warned='' end='' looks=0 restarts=0 silent_since='' completing_since=''
    began=$(date +%s)
    while :; do
        if look "$1"; then weigh "$1"; else bear "$1"; fi
        if [ -z "$end" ] && [ "$looks" -eq 0 ] && [ $(($(date +%s) - began)) -ge "$2" ]; then
            end=${silent_since:+lost}
            end=${end:-timeout}
        fi
        [ -z "$end" ] || return 0
        sleep $((looks > 0 ? POLL_SECONDS << (looks - 1) : pause))
        pause=$((pause * 3 / 2 > POLL_SECONDS_MAX ? POLL_SECONDS_MAX : pause * 3 / 2))
        [ "${queue%%|*}" != RUNNING ] || [ "$pause" -le 60 ] || pause=60
    done
}
