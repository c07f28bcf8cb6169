# The snapshot of sync.sh: a commit of your work, made and pushed without touching your repository.
#
# Runs on:  your machine (bash 3.2 or later); sourced by sync.sh
# Reads:    your repository
# Writes:   a branch on origin, gone again when sync.sh ends; a scratch folder, that of sync.sh; .run/branch
# Calls:    cp date dirname git grep mkdir rm sed ssh
#
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh source=config.sh

: "${state:?}"

# git, without the hooks and watchers that the repository has set up for people.
git_here() {
    git -C "$top" -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"
}

push() {
    git_here push --quiet --no-verify --no-follow-tags --no-signed --recurse-submodules=no "$origin" "$1" 2>"${scratch:?}/errors"
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
        die 5 "cannot read the repository $REPO_ROOT: $(reason)"
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
        die 5 "cannot take in the changes of $top: $(reason). Mend that and run ./sync.sh again."
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
        die 5 "origin ($origin) did not take the branch $branch: $(reason). Mend that and run ./sync.sh again."
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
