# Every value of this bundle that its steps use, with what it means and where it came from.
#
# Made by gen {{ version | comment }} from {{ spec_name | comment }}. To change a value, change the spec and run
# `gen bundle` again; where there is no gen, change it here. What the nodes use stands in build.slurm and
# recipes/, in the lines under the header.
#
{% for note in notes %}
# Note: {{ note | comment }}
{% endfor %}
{% if notes %}
#
{% endif %}
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2016,SC2088  # read by the other scripts; values stand as they are, nothing in them expands
{% for setting in settings %}

# {{ setting | remark }}
readonly {{ setting | assignment }}
{% endfor %}
