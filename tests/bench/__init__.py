"""The benchmark of scripts/bench: each part measures something and gives a table and its verdicts."""
