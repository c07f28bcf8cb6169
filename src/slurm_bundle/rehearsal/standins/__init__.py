"""The stand-ins: one small program that is called by many names, first on the PATH of a rehearsal.

They are called dozens of times in a run, so they are quick to start: standard library only, and of that nothing that
takes milliseconds to import (re, json, argparse, subprocess, pathlib, dataclasses, contextlib, typing); each command
imports only what it needs. What they know of the cluster is in files of the run's folder (place.py); what happens in
time is done by one process that dies with the run (keeper.py).

Messages, formats and exit codes are those of Slurm 22.05.8; tests/cluster/test_conformance.py compares them with it.
"""
