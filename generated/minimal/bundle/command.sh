#!/usr/bin/env bash
#
# The command of this job. What stands below the line is the spec's own text, as it is.
#
# Runs on:  a compute node, started by task.sh
# ------------------------------------------------------------------------------------------------------------------
./run_tests.sh --fast
