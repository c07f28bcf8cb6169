"""salloc: hold an allocation while a command, or a shell, runs."""

import _signal
import os
import time

from slurm_bundle.rehearsal.standins.allocation import Allocating
from slurm_bundle.rehearsal.standins.container import check_options
from slurm_bundle.rehearsal.standins.environment import job_variables
from slurm_bundle.rehearsal.standins.options import read_options
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.site import Site


def run(place: Place, words: list[str]) -> int:
    site = Site(place)
    options = read_options("salloc", words)
    if "version" in options:
        print(site["version"])
        return 0
    check_options("salloc", options)
    name = "no-shell" if "no-shell" in options else os.path.basename((options.rest or ["interactive"])[0])
    allocating = Allocating(place, site, "salloc", options, name)
    allocating.__enter__()
    complain(f"salloc: Granted job allocation {allocating.job.id}")
    if "no-shell" in options:
        return 0
    try:
        code = run_command(place, site, allocating, options.rest or [os.environ.get("SHELL", "/bin/sh")])
    finally:
        if allocating.is_there():
            complain(f"salloc: Relinquishing job allocation {allocating.job.id}")
        allocating.give_back()
    return code


def run_command(place: Place, site: Site, allocating: Allocating, words: list[str]) -> int:
    """Run it with the job's variables; where the allocation is lost meanwhile, it is told, and a shell is hung up."""
    environment = {**os.environ, **job_variables(allocating.job, site)}
    child = os.fork()
    if not child:
        try:
            os.execvpe(words[0], words, environment)
        except OSError as error:
            complain(f'salloc: error: Unable to exec command "{words[0]}": {error.strerror}')
        os._exit(127)
    for number in (1, 15):  # hung up, or asked to end: the finally of `run` gives the allocation back
        _signal.signal(number, lambda number, _: hang_up(child, number))
    told = False
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if not told and not allocating.is_there():
            told = True
            complain(f"salloc: Job allocation {allocating.job.id} has been revoked.")
            os.kill(child, 1)
        place.die_with_keeper()
        time.sleep(0.02)


def hang_up(child: int, number: int) -> None:
    os.kill(child, 1)
    raise StopError(128 + number)
