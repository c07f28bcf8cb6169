# Set up this shell as the spec's remote_init says; what stands between the lines is the spec's own text.
#
# Runs on:  the login node, after login/lib.sh and before each other script
#
# shellcheck shell=bash

# Only what gets past the text below has set up this shell; it reads nothing of the script that follows it.
trap 'report error "remote_init has ended the shell, or has a quote or a here-document that is not closed"; leave 1' EXIT
set +eu
{
    :
# ------------------------------------------------------------------------------------------------------------------
module load slurm

# ------------------------------------------------------------------------------------------------------------------
} </dev/null
set -eu
trap 'leave $?' EXIT
