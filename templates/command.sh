#!/usr/bin/env bash
#
# The command of this job. What stands below the line is the spec's own text, as it is.
#
{% if container %}
# Runs on:  a compute node, in the container, started by task.sh
{% else %}
# Runs on:  a compute node, started by task.sh
{% endif %}
# ------------------------------------------------------------------------------------------------------------------
{{ command_text | verbatim }}
