# Set up this shell as the spec's remote_init says; what stands between the lines is the spec's own text.
#
# Runs on:  the login node, after login/lib.sh and before each other script
#
# shellcheck shell=bash

set +eu
# ------------------------------------------------------------------------------------------------------------------
module load slurm
# ------------------------------------------------------------------------------------------------------------------
set -eu
