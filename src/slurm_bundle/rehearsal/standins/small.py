"""The stand-ins that are a few lines each."""

import os

from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.site import Site


def run_hostname(place: Place, words: list[str]) -> int:
    print(os.environ.get("SLURMD_NODENAME") or "login1")
    return 0


def run_nothing(place: Place, words: list[str]) -> int:
    """What a rehearsal has no use for (module load, sudo): noted, and not done."""
    return 0


def run_nvidia_smi(place: Place, words: list[str]) -> int:
    """nvidia-smi -L and --query-gpu: as many GPUs as a node has."""
    for number in range(Site(place).gpus):
        print(f"GPU {number}: practice GPU (UUID: GPU-{number:08d})" if "-L" in words else number)
    return 0
