# The parts of the test cluster that are no daemon: users, keys, configuration, plugin, images, env.
#
# Sourced by scripts/cluster, which sets: ROOT TESTBED PREFIX and the ports.
# shellcheck shell=bash

PLAIN_USER=${PREFIX}user
CLUSTER_USERS=("$PLAIN_USER" "${PREFIX}tcsh" "${PREFIX}fish")
LAPTOP_USER=${PREFIX}dev
MFA_SERVICE=${PREFIX}-sshd-otp
CLUSTER_NAME=${PREFIX}test

make_folders() {
    mkdir -p "$ROOT"/{run,log,etc,state,dev,bin,home,otp,origin,lustre/users,lustre/models,images,client/bin}
    mkdir -p "$ROOT"/state/{slurmctld,slurmd.n1,slurmd.n2,pmix,pyxis} "$ROOT"/nodes/{n1,n2}/containers
    chmod 755 "$ROOT" "$ROOT"/nodes/{,n1/,n2/}containers 2>/dev/null || chmod 755 "$ROOT"
    touch "$ROOT/faults"
    make_gpus
    printf 'state of a gen test cluster; scripts/cluster down removes this folder\n' >"$ROOT/.gen-cluster"
    # sshd has this path built in.
    mkdir -p /run/sshd
}

# GPUs are copies of /dev/null. Without the right to make devices, empty files: CUDA_VISIBLE_DEVICES stays unset then.
make_gpus() {
    local gpu
    for gpu in "$ROOT"/dev/gpu{0..7}; do
        if [[ -e $gpu ]]; then continue; fi
        mknod "$gpu" c 1 3 2>/dev/null || touch "$gpu"
    done
}

# create_user NAME SHELL: in /etc/passwd, the one place where Slurm and sshd look; `down` removes it again.
create_user() {
    local name=$1 shell=$2 home=$ROOT/home/$1 known
    if known=$(getent passwd "$name"); then
        if [[ $(cut -d: -f6 <<<"$known") != "$home" ]]; then
            fail "user $name exists and its home is not $home; is there another test cluster? End it, or set GEN_CLUSTER_PREFIX."
        fi
    else
        useradd --create-home --home-dir "$home" --shell "$shell" --user-group --password '*' "$name" ||
            fail "useradd $name failed (see above); users are made as root."
    fi
    install -d -m 700 -o "$name" -g "$name" "$home/.ssh"
}

create_users() {
    local name
    create_user "$PLAIN_USER" /bin/bash
    create_user "${PREFIX}tcsh" /usr/bin/tcsh
    create_user "${PREFIX}fish" /usr/bin/fish
    create_user "$LAPTOP_USER" /bin/bash
    for name in "${CLUSTER_USERS[@]}"; do
        install -d -m 755 -o "$name" -g "$name" "$ROOT/lustre/users/$name"
    done
    chown "$PLAIN_USER:" "$ROOT/origin" "$ROOT/lustre/models"
}

make_key() {
    if [[ ! -e $1 ]]; then ssh-keygen -q -t ed25519 -N '' -C "$2" -f "$1"; fi
}

make_keys() {
    local home=$ROOT/home/$PLAIN_USER name port
    make_key "$ROOT/etc/host_key" gen-test-host
    # Owned by the laptop's plain user: ssh takes it from this user and, as root may read all, from root.
    make_key "$ROOT/client/key" gen-test-client
    make_key "$home/.ssh/id_ed25519" gen-test-cluster
    for port in "$PORT_LOGIN" "$PORT_MFA" "$PORT_ORIGIN"; do
        printf '[127.0.0.1]:%s %s\n' "$port" "$(cut -d' ' -f1,2 "$ROOT/etc/host_key.pub")"
    done >"$ROOT/client/known_hosts"
    for name in "${CLUSTER_USERS[@]}"; do
        cat "$ROOT/client/key.pub" "$home/.ssh/id_ed25519.pub" >"$ROOT/home/$name/.ssh/authorized_keys"
        chown "$name:" "$ROOT/home/$name/.ssh/authorized_keys"
    done
    chown "$LAPTOP_USER:" "$ROOT/client/key"
    chown "$PLAIN_USER:" "$home"/.ssh/id_ed25519{,.pub}
}

# The second factor of the user: one secret, codes of 30 s, a code may be used again within its time.
make_otp_secret() {
    local file=$ROOT/otp/$PLAIN_USER
    if [[ -e $file ]]; then return; fi
    (umask 377 && printf '%s\n" WINDOW_SIZE 3\n" TOTP_AUTH\n' "$(head -c 20 /dev/urandom | base32)" >"$file")
}

# fill TEMPLATE TARGET [NAME=VALUE...]: replaces @NAME@ by its value.
fill() {
    local template=$TESTBED/$1 target=$2 pair
    local -a edits=()
    shift 2
    for pair in "ROOT=$ROOT" "HOST=$(hostname -s)" "ADDRESS=$address" "LISTEN=$listen" "LISTEN_SLURMDBD=$listen_slurmdbd" \
        "CLUSTER=$CLUSTER_NAME" "USER=$PLAIN_USER" "USER_TCSH=${PREFIX}tcsh" "USER_FISH=${PREFIX}fish" \
        "PORT_SLURMCTLD=$PORT_SLURMCTLD" \
        "PORT_SLURMDBD=$PORT_SLURMDBD" "PORT_N1=$PORT_N1" "PORT_N2=$PORT_N2" "PORT_LOGIN=$PORT_LOGIN" \
        "PORT_MFA=$PORT_MFA" "PORT_ORIGIN=$PORT_ORIGIN" "$@"; do
        edits+=(-e "s|@${pair%%=*}@|${pair#*=}|g")
    done
    sed "${edits[@]}" "$template" >"$target"
}

# Slurm's daemons listen on one address where they can: the one of this host's name. With an address like 127.0.1.1
# slurmd and srun cannot (srun is called back at 127.0.0.1); without any address none can.
choose_address() {
    listen=NoCtldInAddrAny,NoInAddrAny
    listen_slurmdbd=NoInAddrAny
    if address=$(getent ahostsv4 "$(hostname)"); then
        address=${address%% *}
        if [[ $address == 127.* && $address != 127.0.0.1 ]]; then listen=NoCtldInAddrAny; fi
    else
        address=127.0.0.1 listen=keepaliveinterval=30 listen_slurmdbd=keepaliveinterval=30
    fi
    if [[ $listen != *NoInAddrAny ]]; then
        warn "note: slurmd listens on all addresses; to have it on loopback only, say '127.0.0.1 $(hostname)' in /etc/hosts"
    fi
}

write_configs() {
    local users="${CLUSTER_USERS[*]}" home=$ROOT/home/$PLAIN_USER command
    choose_address
    fill slurm.conf.in "$ROOT/etc/slurm.conf"
    fill gres.conf.in "$ROOT/etc/gres.conf"
    fill mpi.conf.in "$ROOT/etc/mpi.conf"
    (umask 077 && fill slurmdbd.conf.in "$ROOT/etc/slurmdbd.conf")
    fill sshd_config.in "$ROOT/etc/sshd_login.conf" "PORT=$PORT_LOGIN" "ALLOW_USERS=$users" METHODS=publickey PAM=no
    fill sshd_config.in "$ROOT/etc/sshd_origin.conf" "PORT=$PORT_ORIGIN" "ALLOW_USERS=$users" METHODS=publickey PAM=no
    fill sshd_config.in "$ROOT/etc/sshd_mfa.conf" "PORT=$PORT_MFA" "ALLOW_USERS=$users" \
        METHODS=publickey,keyboard-interactive PAM=yes
    fill pam.in "/etc/pam.d/$MFA_SERVICE"
    fill ssh_config.in "$ROOT/client/ssh_config" "KEY=$ROOT/client/key"
    fill ssh_config.in "$home/.ssh/config" "KEY=$home/.ssh/id_ed25519"
    chown "$PLAIN_USER:" "$home/.ssh/config"
    chmod 600 "$home/.ssh/config"
    for command in ssh scp sftp; do
        printf '#!/bin/sh\nexec /usr/bin/%s -F %s/client/ssh_config "$@"\n' "$command" "$ROOT" >"$ROOT/client/bin/$command"
        chmod 755 "$ROOT/client/bin/$command"
    done
    configure_containers
}

configure_containers() {
    local user
    if REAL_PYXIS=$(find_pyxis); then
        printf 'required %s runtime_path=%s/state/pyxis\n' "$REAL_PYXIS" "$ROOT" >"$ROOT/etc/plugstack.conf"
        for user in "${CLUSTER_USERS[@]}"; do
            install -d -o "$user" -g "$user" "$ROOT/home/$user"/{.local,.local/share,.local/share/enroot} \
                "$ROOT/home/$user"/{.config,.config/enroot,.config/enroot/hooks.d}
            install -m 755 "$TESTBED/host_usr_hook" "$ROOT/home/$user/.config/enroot/hooks.d/10-host-usr.sh"
        done
    else
        printf 'required %s/container_plugin.so root=%s\n' "$ROOT" "$ROOT" >"$ROOT/etc/plugstack.conf"
        fill enroot.in "$ROOT/bin/enroot"
        chmod 755 "$ROOT/bin/enroot"
    fi
}

# Prints the path of the real plugin where pyxis and enroot are installed.
find_pyxis() {
    local path
    if ! command -v enroot >/dev/null; then return 1; fi
    for path in /usr/lib/*/slurm*/spank_pyxis.so /usr/lib/slurm*/spank_pyxis.so /usr/local/lib/slurm/spank_pyxis.so; do
        if [[ -e $path ]]; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    return 1
}

build_plugin() {
    local source=$TESTBED/container_plugin.c target=$ROOT/container_plugin.so
    if [[ $target -nt $source ]]; then return; fi
    gcc -std=c11 -O1 -Wall -Wextra -Werror -shared -fPIC -o "$target.new" "$source" ||
        fail "cannot compile $source (see above); is libslurm-dev installed? Run: scripts/cluster install"
    mv "$target.new" "$target"
}

make_images() {
    if [[ $ROOT/images/.made -nt $TESTBED/make_images ]]; then return; fi
    "$TESTBED/make_images" "$ROOT/images" || fail "cannot make the container images (see above)"
    touch "$ROOT/images/.made"
}

write_env() {
    cat >"$ROOT/env" <<EOT
export GEN_CLUSTER_DIR=$ROOT
export SLURM_CONF=$ROOT/etc/slurm.conf
export GEN_CLIENT_BIN=$ROOT/client/bin
export GEN_CLIENT_USER=$LAPTOP_USER
export GEN_SSH_HOST=gen-login
export GEN_MFA_HOST=gen-mfa
export GEN_TCSH_HOST=gen-tcsh
export GEN_FISH_HOST=gen-fish
export GEN_USER=$PLAIN_USER
export GEN_USER_HOME=$ROOT/home/$PLAIN_USER
export GEN_USER_ROOT=$ROOT/lustre/users/$PLAIN_USER
export GEN_MODELS=$ROOT/lustre/models
export GEN_ACCOUNT=llm_research
export GEN_ACCOUNT_INTERACTIVE=interactive
export GEN_PARTITION=batch
export GEN_PARTITION_SHORT=short
export GEN_ORIGIN_DIR=$ROOT/origin
export GEN_ORIGIN_URL=ssh://gen-origin$ROOT/origin
export GEN_SSHD_LOG=$ROOT/log/sshd_login.log
export GEN_MFA_SSHD_LOG=$ROOT/log/sshd_mfa.log
export GEN_ORIGIN_SSHD_LOG=$ROOT/log/sshd_origin.log
export GEN_IMAGES=$ROOT/images
export GEN_IMAGE=$ROOT/images/devel.sqsh
export GEN_CONTAINERS=$(if [[ -n $REAL_PYXIS ]]; then echo pyxis; else echo stand-in; fi)
export GEN_REGISTRY_IMAGE='registry.example.org#tensorrt-llm/devel:1.0'
export GEN_FAULTS=$ROOT/faults
export GEN_OTP_SECRET=$(head -n 1 "$ROOT/otp/$PLAIN_USER")
export GEN_SSH_PORT=$PORT_LOGIN
export GEN_MFA_PORT=$PORT_MFA
EOT
    chmod 644 "$ROOT/env"
}

delete_users() {
    local name
    for name in "${CLUSTER_USERS[@]}" "$LAPTOP_USER"; do
        if [[ $(getent passwd "$name" | cut -d: -f6) == "$ROOT/home/$name" ]]; then
            userdel "$name" || warn "userdel $name failed (see above)"
        fi
    done
}
