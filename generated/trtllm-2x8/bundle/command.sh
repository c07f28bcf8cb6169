#!/usr/bin/env bash
#
# The command of this job. What stands below the line is the spec's own text, as it is.
#
# Runs on:  a compute node, in the container, started by task.sh
# ------------------------------------------------------------------------------------------------------------------
trtllm-bench --model deepseek_v3_lite throughput --dataset /models/data.json
