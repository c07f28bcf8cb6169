# Start, look at and end the daemons of the test cluster; each is known by its pid and that pid's start time.
#
# Sourced by scripts/cluster, which sets: ROOT TESTBED and what site.sh sets.
# shellcheck shell=bash

readonly ENROOT_CONFIG=/etc/enroot/enroot.conf
readonly DAEMONS=(munged mariadbd slurmdbd slurmctld slurmd.n1 slurmd.n2 sshd_login sshd_mfa sshd_origin)

# Prints when a process started, in clock ticks since boot: with the pid, this names one process for good.
start_time() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # The name, in parentheses, may hold spaces.
    cut -d' ' -f20 <<<"${stat##*) }"
}

daemon_pid() {
    local pid started
    read -r pid started 2>/dev/null <"$ROOT/run/$1.pid" || return 1
    if [[ $(start_time "$pid") != "$started" ]]; then return 1; fi
    printf '%s\n' "$pid"
}

# start_daemon NAME [VARIABLE=VALUE...] COMMAND...: in the foreground of its own session, with a bare environment.
start_daemon() {
    local name=$1 pid
    shift
    if daemon_pid "$name" >/dev/null; then return; fi
    setsid env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "SLURM_CONF=$ROOT/etc/slurm.conf" "GEN_CLUSTER_DAEMON=$ROOT" "$@" </dev/null >>"$ROOT/log/$name.log" 2>&1 &
    pid=$!
    printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$ROOT/run/$name.pid"
}

# fail_with_log LOG MESSAGE
fail_with_log() {
    {
        printf -- '--- last lines of %s\n' "$ROOT/log/$1"
        tail -n 20 "$ROOT/log/$1"
    } >&2
    fail "$2 Read the lines above, then run: scripts/cluster down; scripts/cluster up"
}

# wait_for SECONDS DAEMON WHAT COMMAND...
wait_for() {
    local deadline=$((SECONDS + $1)) daemon=$2 what=$3
    shift 3
    until "$@" >/dev/null 2>"$ROOT/log/last_answer"; do
        if ! daemon_pid "$daemon" >/dev/null; then
            fail_with_log "$daemon.log" "$daemon ended by itself, while waiting for $what."
        fi
        if ((SECONDS >= deadline)); then
            printf -- '--- last answer of: %s\n%s\n' "$*" "$(<"$ROOT/log/last_answer")" >&2
            fail_with_log "$daemon.log" "waited for $what in vain."
        fi
        sleep 0.1
    done
}

start_munged() {
    if [[ ! -e $ROOT/etc/munge.key ]]; then
        (umask 077 && head -c 1024 /dev/urandom >"$ROOT/etc/munge.key")
    fi
    start_daemon munged /usr/sbin/munged --foreground --force --num-threads=4 --socket="$ROOT/run/munge.socket" \
        --key-file="$ROOT/etc/munge.key" --pid-file="$ROOT/run/munged.own.pid" \
        --log-file="$ROOT/log/munged.own.log" --seed-file="$ROOT/state/munged.seed"
}

# Each has temporary files of its own: one that starts removes those it finds, also another's that are in use.
start_mariadbd() {
    local data=$ROOT/state/mysql
    local -x TMPDIR=$ROOT/state/mysql_tmp
    (umask 077 && mkdir -p "$TMPDIR")
    if [[ ! -e $data/.made ]]; then
        rm -rf -- "$data"
        mkdir -m 700 "$data"
        # --force: also where this host's name cannot be looked up.
        mariadb-install-db --no-defaults --user=root --datadir="$data" --skip-test-db --skip-name-resolve --force \
            --auth-root-authentication-method=socket >"$ROOT/log/mariadb_install.log" 2>&1 ||
            fail_with_log mariadb_install.log "mariadb-install-db failed."
        touch "$data/.made"
    fi
    start_daemon mariadbd /usr/sbin/mariadbd --no-defaults --user=root --datadir="$data" --skip-networking \
        --socket="$ROOT/run/mysql.socket" --pid-file="$ROOT/run/mariadbd.own.pid" \
        --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900 --innodb-log-file-size=16M
}

# lustre/ stands for a shared file system: what is mounted there is so on the login node and on both nodes.
share_mounts() {
    if ! mountpoint --quiet "$ROOT/lustre"; then
        mount --bind "$ROOT/lustre" "$ROOT/lustre"
        mount --make-shared "$ROOT/lustre"
    fi
}

# Prints the folders that each node needs for itself, and that two slurmd of one host would share.
list_node_folders() {
    local user setting path
    printf '%s\n' "$ROOT/state/pmix" /dev/shm
    if [[ -z $REAL_PYXIS ]]; then return; fi
    printf '%s\n' "$ROOT/state/pyxis" /run/enroot
    for user in "${CLUSTER_USERS[@]}"; do printf '%s\n' "$ROOT/home/$user/.local/share/enroot"; done
    # Of a path with variables, as in /scratch/user-$(id -u), the folder before the first of them.
    while read -r setting path; do
        if [[ $setting =~ ^ENROOT_(RUNTIME|DATA)_PATH$ && $path == /*/* ]]; then
            path=${path%%\$*}
            printf '%s\n' "${path%/*}"
        fi
    done <"$ENROOT_CONFIG"
}

start_slurmd() {
    local node=$1
    local -a folders
    mapfile -t folders < <(list_node_folders)
    start_daemon "slurmd.$node" "GEN_NODE=$node" "$TESTBED/own_mounts" "$ROOT/nodes/$node" "${folders[@]}" -- \
        /usr/sbin/slurmd -D -N "$node"
}

# start_sshd NAME [PROGRAM]: the program's name is the name of its PAM service.
start_sshd() {
    start_daemon "$1" "${2:-/usr/sbin/sshd}" -D -f "$ROOT/etc/$1.conf" -E "$ROOT/log/$1.log"
}

make_accounts() {
    local user
    if [[ -e $ROOT/etc/accounts ]]; then return; fi
    {
        printf 'add cluster %s\n' "$CLUSTER_NAME"
        printf 'add account llm_research,interactive cluster=%s\n' "$CLUSTER_NAME"
        for user in "${CLUSTER_USERS[@]}"; do
            printf 'add user %s account=llm_research,interactive defaultaccount=llm_research cluster=%s\n' "$user" "$CLUSTER_NAME"
        done
    } >"$ROOT/etc/accounts.new"
    sacctmgr --immediate --quiet <"$ROOT/etc/accounts.new" >"$ROOT/log/accounts.log" 2>&1 ||
        fail_with_log accounts.log "sacctmgr could not add the accounts."
    mv "$ROOT/etc/accounts.new" "$ROOT/etc/accounts"
}

node_answers() {
    [[ $(sinfo --noheader --nodes="$1" --partition=batch --format=%T) =~ ^(idle|mixed|allocated)$ ]]
}

ssh_answers() {
    "$ROOT/client/bin/ssh" -o BatchMode=yes "$1" true
}

port_open() {
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Prints the pids that belong to the cluster: the daemons, all that came of them, and all of its users' processes.
list_processes() {
    local name pid file
    local -A mine=()
    for name in "${DAEMONS[@]}"; do
        if pid=$(daemon_pid "$name"); then mine[$pid]=1; fi
    done
    for name in "${CLUSTER_USERS[@]}"; do
        if [[ $(getent passwd "$name" | cut -d: -f6) != "$ROOT/home/$name" ]]; then continue; fi
        while read -r pid; do mine[$pid]=1; done < <(ps -o pid= -u "$name")
    done
    for file in /proc/[0-9]*/environ; do
        if grep -qzFx "GEN_CLUSTER_DAEMON=$ROOT" "$file" 2>/dev/null; then
            pid=${file#/proc/}
            mine[${pid%/environ}]=1
        fi
    done
    local grown=1 parent
    while ((grown)); do
        grown=0
        while read -r pid parent; do
            if [[ -n ${mine[$parent]-} && -z ${mine[$pid]-} ]]; then
                mine[$pid]=1
                grown=1
            fi
        done < <(ps -e -o pid=,ppid=)
    done
    if ((${#mine[@]})); then printf '%s\n' "${!mine[@]}"; fi
}

# stop_processes SIGNAL SECONDS: true when none is left.
stop_processes() {
    local signal=$1 deadline=$((SECONDS + $2))
    local -a pids
    mapfile -t pids < <(list_processes)
    if ((${#pids[@]} == 0)); then return 0; fi
    # Some end by themselves in between.
    kill -s "$signal" "${pids[@]}" 2>/dev/null || true
    while ((SECONDS < deadline)); do
        mapfile -t pids < <(list_processes)
        if ((${#pids[@]} == 0)); then return 0; fi
        sleep 0.2
    done
    return 1
}
