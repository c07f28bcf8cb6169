#!/usr/bin/env bash
#
# Bring the code to the cluster as it stands here, committed or not.
#
# Runs on:  your machine (bash 3.2 or later); one session with the login node
# Reads:    config.sh, lib.sh, login/sync.sh, your repository
# Writes:   a branch on origin, gone again when this ends; REMOTE_REPO and REMOTE_WORK on the cluster; .run/
# Calls:    basename cat cp date dirname git mkdir mktemp mv rm sed ssh tail tar tr wc
# Undo:     nothing to undo here: your files, index, branches and stash are only read
# Exit:     0 the cluster has the code, 2 wrong use, 5 sync failed, 13 the line broke

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(cd "$(dirname "$0")" && pwd)
. "$bundle/config.sh"
. "$bundle/lib.sh"

readonly FAILED=5

# git, without the hooks and watchers that the repository has set up for people.
git_here() {
    git -C "$top" -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"
}

push() {
    git_here push --quiet --no-verify --no-follow-tags --no-signed --recurse-submodules=no "$origin" "$1" 2>"$scratch/errors"
}

# The line in which git says why, among those that it prints around it.
reason() {
    sed -nE '/^(remote|ssh|fatal|error): +[^ ]/{s/ *$//p;q;}' "$scratch/errors"
}

# New objects go to a folder of our own, so that not even the object store of the repository changes.
open_repository() {
    local objects
    unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
    top=$(git -C "$REPO_ROOT" rev-parse --show-toplevel 2>"$scratch/errors") ||
        die $FAILED "cannot read the repository $REPO_ROOT: $(reason)"
    origin=$(git_here remote get-url --push origin 2>/dev/null || printf '%s\n' "$REPO_URL")
    objects=$(cd "$top" && cd "$(git_here rev-parse --git-path objects)" && pwd)
    mkdir -p "$scratch/objects/info"
    printf '%s\n' "$objects" >"$scratch/objects/info/alternates"
    export GIT_OBJECT_DIRECTORY=$scratch/objects GIT_OPTIONAL_LOCKS=0
    if [ ! -t 0 ]; then
        GIT_SSH_COMMAND="$(git_here config core.sshCommand || printf ssh) -o BatchMode=yes"
        export GIT_SSH_COMMAND GIT_TERMINAL_PROMPT=0
    fi
}

# A commit of every tracked change, staged or not, made through a copy of the index.
take_snapshot() {
    local index tree parent
    index=$(git_here rev-parse --git-path index)
    index=$(cd "$top" && cd "$(dirname "$index")" && pwd)/index
    [ ! -e "$index" ] || cp "$index" "$scratch/index"
    export GIT_INDEX_FILE=$scratch/index
    if ! git_here add --update 2>"$scratch/errors" || ! tree=$(git_here write-tree 2>"$scratch/errors"); then
        die $FAILED "cannot take in the changes of $top: $(reason). Mend that and run ./sync.sh again."
    fi
    unset GIT_INDEX_FILE
    parent=$(git_here rev-parse --verify --quiet HEAD || :)
    snapshot=$(
        export GIT_AUTHOR_NAME=gen GIT_AUTHOR_EMAIL=gen@localhost GIT_COMMITTER_NAME=gen GIT_COMMITTER_EMAIL=gen@localhost
        git_here commit-tree "$tree" ${parent:+-p "$parent"} -m 'Snapshot for a run on the cluster'
    )
}

# By URL and not by the name origin, so that no remote-tracking branch appears here.
push_snapshot() {
    branch=${BRANCH_PREFIX}_$(date +%Y%m%d%H%M%S)
    keep branch "$branch"
    push "$snapshot:refs/heads/$branch" ||
        die $FAILED "origin ($origin) did not take the branch $branch: $(reason). Mend that and run ./sync.sh again."
}

# Take off origin the branch that this run, or an earlier one that was killed, has put there.
drop_branch() {
    local leftover
    leftover=$(kept branch)
    [ -n "$leftover" ] || return 0
    if push ":refs/heads/$leftover" || grep -q 'remote ref does not exist' "$scratch/errors"; then
        rm -f "$state/branch"
    else
        say "the branch $leftover may still be on origin; take it off with: git push $origin --delete $leftover"
    fi
}

tidy() {
    [ -z "${origin-}" ] || drop_branch
    rm -rf "$scratch"
}

# The names of the untracked files, each ended by a NUL, and begun by ./ so that none is taken for an option.
list_untracked() {
    local name
    git_here ls-files --others --exclude-standard -z >"$scratch/untracked"
    while IFS= read -r -d '' name; do
        if [ -f "$top/$name" ] || [ -L "$top/$name" ] || [ -d "$top/$name" ]; then
            printf './%s\0' "$name"
        else
            say "left out, since it is no plain file: $name"
        fi
    done <"$scratch/untracked" >"$scratch/names"
    untracked=$(tr -dc '\000' <"$scratch/names" | wc -c | tr -d ' ')
}

# pack FOLDER ARGUMENT...: a tar stream of files below FOLDER; what went wrong is kept for check_packed.
pack() {
    COPYFILE_DISABLE=1 tar -C "$@" 2>"$scratch/tar" || printf '%s\n' $? >"$scratch/tar_failed"
}

check_packed() {
    [ ! -e "$scratch/tar_failed" ] ||
        die $FAILED "tar could not read all of $1: $(sed -n 1p "$scratch/tar"). Mend that, or have git ignore the file, and run ./sync.sh again."
}

# One session: fetch and check out there, then unpack the untracked files that follow on the same stream.
deliver() {
    local code=0
    if [ "$untracked" -eq 0 ]; then
        on_login sync.sh "branch=$branch" "snapshot=$snapshot" "untracked=0" </dev/null || code=$?
    else
        pack "$top" --null -T "$scratch/names" -cf - |
            on_login sync.sh "branch=$branch" "snapshot=$snapshot" "untracked=$untracked" || code=$?
        check_packed 'the untracked files'
    fi
    expect_end $FAILED "$code" 'Mend that and run ./sync.sh again.'
    repo=$(answer repo)
}

begin_step
need $FAILED git ssh tar
scratch=$(mktemp -d)
open_repository
drop_branch
take_snapshot
push_snapshot
list_untracked
deliver
keep snapshot "$snapshot"
say "$repo on $SSH_HOST is at $snapshot, with $untracked untracked files"
