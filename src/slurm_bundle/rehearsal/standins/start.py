"""Starts a stand-in: python -ISE start.py PLACE SIDE NAME [ARGUMENT...]; the files in PLACE/bin do so."""

import sys

sys.path.append(__file__.rsplit("/", 4)[0])
from slurm_bundle.rehearsal.standins.main import main

main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
