#!/usr/bin/env bash
#
# The command of this job. What stands below the line is the spec's own text, as it is.
#
# Runs on:  a compute node, started by task.sh
# ------------------------------------------------------------------------------------------------------------------
python3 -c 'import sys; print(sys.argv)' --cfg '{"lr": 1e-3, "name": "it'"'"'s $HOME `date` !x"}' 'a|b(c)' \
    && echo "done {{ not jinja }} ${#HOME}"  # and a comment
