#!/usr/bin/env bash
#
# Bring the code to the cluster as it stands here, committed or not.
#
# Runs on:  your machine (bash 3.2 or later); one session with the login node
# Reads:    config.sh, lib.sh, remote.sh, snapshot.sh, login/sync.sh, your repository
# Writes:   .run/; a scratch folder, gone again when this ends; a branch on origin, gone again when this ends
# Writes:   the folder USER_ROOT on the cluster; REMOTE_REPO on the cluster; the folder REMOTE_WORK on the cluster
# Calls:    basename cat cp date dirname git grep mkdir mktemp mv rm sed ssh tail tar tr wc
# Undo:     nothing to undo here: your files, index, branches and stash are only read
# Exit:     0 the cluster has the code, 2 wrong use, 5 sync failed, 13 the line broke, 130 interrupted

set -euo pipefail
case ${1-} in -h | --help) exec sed -n '/^#/!q; /^#!/d; s/^# \{0,1\}//p' "$0" ;; esac

bundle=$(CDPATH='' cd "$(dirname "$0")" && [ -e config.sh ] && pwd) || { printf '%s: no bundle around it. Call it by its own path, not by a link\n' "$0" >&2 && exit 2; }
. "$bundle/config.sh"
. "$bundle/lib.sh"
. "$bundle/remote.sh"
. "$bundle/snapshot.sh"

readonly FAILED=5
origin='' scratch=''

# However this ends: the branch goes from origin.
tidy() {
    [ -z "$origin" ] || drop_branch
    [ -z "$scratch" ] || rm -rf "$scratch"
}

make_scratch() {
    scratch=$(mktemp -d 2>"$state/errors") ||
        die $FAILED "cannot make a folder for temporary files: $(last_words "$state/errors"). Set TMPDIR to a folder that can be written to, and run ./sync.sh again."
}

# The names of the untracked files, each ended by a NUL, and begun by ./ so that none is taken for an option.
list_untracked() {
    local name
    git_here ls-files --others --exclude-standard -z >"$scratch/untracked" 2>"$scratch/errors" ||
        die $FAILED "cannot list the untracked files of $top: $(reason). Mend that and run ./sync.sh again."
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

# A tar that was cut off is not at fault: the other side stopped reading, and says why itself.
check_packed() {
    [ -e "$scratch/tar_failed" ] || return 0
    case $(cat "$scratch/tar") in '' | *'Broken pipe'* | *'Write error'*) return 0 ;; esac
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
    expect_end $FAILED "$code"
    repo=$(answer repo)
}

begin_step
need $FAILED git ssh tar
make_scratch
open_repository
drop_branch
take_snapshot
push_snapshot
list_untracked
deliver
keep snapshot "$snapshot"
say "$repo on $SSH_HOST is at $snapshot, with $untracked untracked files"
