"""The practice cluster: stand-ins for ssh, Slurm and what lies around them, so that a bundle runs with no cluster.

rehearse.py is what others use. standins/ holds the programs that take the place of ssh, sbatch, squeue and the rest;
they import nothing of this package but each other.
"""
