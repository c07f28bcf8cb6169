#!/usr/bin/env bash
#
# The build command. What stands below the line is the spec's own text, as it is.
#
# Runs on:  a compute node, started by build.sh
# ------------------------------------------------------------------------------------------------------------------
make -C 'sub dir' -j"$(nproc)" && echo "built"
