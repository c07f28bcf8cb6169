# Check out the snapshot and unpack the untracked files that follow on stdin.
#
# Runs on:  the login node, after login/lib.sh
# Given:    branch, snapshot, untracked (how many files follow)
# Reads:    a tar stream on stdin, unless untracked is 0
# Writes:   the folder USER_ROOT; the folder REMOTE_WORK; REMOTE_REPO; a scratch folder, gone again when this ends
# Reports:  repo
# Calls:    git grep mkdir mktemp rm sed ssh tar timeout
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=../config.sh
case ${1-} in -h | --help) exec sed -n '/^#/!q; s/^# \{0,1\}//p' "$0" ;; esac

: "${scratch:?}" "${branch:?}" "${snapshot:?}" "${untracked:?}"
repo=$(at_home "$REMOTE_REPO")
work=$(at_home "$REMOTE_WORK")

# try_git DOING ARGUMENT...: git, or the end of this script with what could not be done and git's own reason.
try_git() {
    local doing=$1
    shift
    timeout 1800 git "$@" >/dev/null 2>"$scratch/errors" </dev/null || fail "cannot $doing: $(reason)"
}

# The line of a complaint that tells the most, in this order: about the disk, from git's other end, from git, the last.
reason() {
    local words word
    for words in 'No space left|quota exceeded|Read-only file system' 'Permission denied|verification failed|^ssh: |^remote: ' '^(fatal|error|tar): ' '.'; do
        word=$(grep -m 1 -E -e "$words" "$scratch/errors") && break
    done
    word=${word%$'\r'}
    printf '%s\n' "${word%.}"
}

make_folder() {
    mkdir -p "$1" 2>"$scratch/errors" || fail "cannot make $1: $(reason)"
}

clone_or_fetch() {
    if [ ! -e "$repo" ]; then
        try_git "clone $REPO_URL to $repo" clone --no-checkout -- "$REPO_URL" "$repo"
    fi
    [ -d "$repo/.git" ] || fail "$repo is there, but is no clone of git; move it away, or set remote_repo_path to another place"
    cd "$repo" || fail "cannot enter $repo"
    try_git "fetch from $REPO_URL" fetch --prune origin
}

# The logs of earlier runs may lie inside the clone: they are no leftovers. To git the line is a pattern.
spare_work() {
    local line
    line=$(printf '%s\n' "${work#"$repo"}/" | sed 's/[*?[\\]/\\&/g')
    make_folder "$work"
    make_folder .git/info
    case $work in "$repo"/*) ;; *) return 0 ;; esac
    grep -qxF -e "$line" .git/info/exclude 2>"$scratch/errors" || { printf '%s\n' "$line" >>.git/info/exclude; } 2>"$scratch/errors" ||
        fail "cannot write $repo/.git/info/exclude: $(reason)"
}

# What somebody left in the clone is stashed, never thrown away. (stash save: stash push is not in git before 2.13.)
set_leftovers_aside() {
    export GIT_AUTHOR_NAME=gen GIT_AUTHOR_EMAIL=gen@localhost GIT_COMMITTER_NAME=gen GIT_COMMITTER_EMAIL=gen@localhost
    [ ! -e .git/index ] || try_git "stash what was left in $repo" stash save --quiet --include-untracked 'left over before a sync by gen'
}

check_out() {
    local path
    try_git "check out $branch in $repo" checkout --force -B "$branch" "origin/$branch"
    for path in ${REFRESH_PATHS[@]+"${REFRESH_PATHS[@]}"}; do
        git rev-parse --quiet --verify "HEAD:${path%/}" >/dev/null || continue
        rm -rf -- "${path:?}" 2>"$scratch/errors" || fail "cannot clear $repo/$path: $(reason)"
        try_git "restore $path in $repo" checkout HEAD -- "$path"
    done
    [ "$(git rev-parse HEAD)" = "$snapshot" ] || fail "$repo is at $(git rev-parse HEAD) and not at $snapshot, which was sent"
}

unpack_untracked() {
    [ "$untracked" -eq 0 ] || tar -xf - --no-same-owner 2>"$scratch/errors" || fail "cannot unpack the untracked files in $repo: $(reason)"
}

main() {
    make_folder "$(at_home "$USER_ROOT")"
    clone_or_fetch
    spare_work
    set_leftovers_aside
    check_out
    unpack_untracked
    report repo "$repo"
}

main
