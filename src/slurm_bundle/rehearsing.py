"""Runs rehearsals of a bundle, each in a folder that goes with it, and tells what happens as the events of a run."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_bundle.problems import GenError
from slurm_bundle.rehearsal.practice import check_folder
from slurm_bundle.rehearsal.rehearse import Rehearsed, outside, rehearse, scenarios_for
from slurm_bundle.rehearsal.scenarios import SCENARIOS
from slurm_bundle.run import Event, Teller


@contextmanager
def place_for(keep: Path | None) -> Iterator[Path]:
    """The folder of the rehearsals: the given one, which stays, or a temporary one.

    Raises GenError where the given one cannot be used.
    """
    if keep is not None:
        check_folder(keep.resolve())
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="gen-rehearsal-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rehearse_one(
    out: Path, folder: Path, scenario: str, show: Callable[[Event], None], *, run_commands: bool = False
) -> Rehearsed:
    """Rehearse the bundle in `out` below `folder`, and show each event of its runs.

    Raises GenError where the scenario does not exist or means nothing for the bundle.
    """
    place = folder.resolve() / scenario
    teller = Teller(place / "state", show)

    def hear(line: str) -> None:
        teller.hear(outside(line, place, out))

    rehearsed = rehearse(out, place, scenario, run_commands=run_commands, on_line=hear)
    teller.catch_up()
    return rehearsed


def rehearse_all(out: Path, folder: Path, *, run_commands: bool = False) -> Iterator[Rehearsed]:
    """Rehearse each scenario that means something for the bundle, in the order of the table, up to an interrupt."""
    for scenario in scenarios_for(out):
        rehearsed = rehearse_one(out, folder, scenario.name, lambda event: None, run_commands=run_commands)
        yield rehearsed
        if rehearsed.interrupted:
            return


def list_scenarios() -> str:
    """Give the names of the scenarios, each with what goes wrong in it, a line each."""
    return "\n".join(f"{scenario.name:24} {scenario.what}" for scenario in SCENARIOS.values())


def require_scenario(name: str) -> None:
    """Raises GenError where there is no such scenario."""
    if name not in SCENARIOS:
        raise GenError(f"--scenario {name}: there is none of this name. There are:\n{list_scenarios()}")
