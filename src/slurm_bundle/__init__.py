"""gen: one job spec in, a bundle of plain bash for a Slurm cluster out."""

__version__ = "0.1.0"
