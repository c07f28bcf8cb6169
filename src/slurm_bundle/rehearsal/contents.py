"""What a rehearsal has to know of a bundle: its values, as bash reads them, and what it asks of Slurm."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from slurm_bundle.problems import GenError
from slurm_bundle.rehearsal.standins.options import read_directives

OPTION = re.compile(r"--(?P<name>[a-z-]+)=(?P<value>.*)", re.DOTALL)


class ContentsError(GenError):
    """The folder is no bundle that can be rehearsed."""


@dataclass(frozen=True)
class Contents:
    """A bundle as far as a rehearsal looks into it."""

    folder: Path
    values: dict[str, tuple[str, ...]]  # of config.sh; a plain one is a tuple of one
    options: tuple[tuple[str, str], ...]  # all that is asked of sbatch, by name

    def value(self, name: str, default: str = "") -> str:
        return (self.values.get(name) or (default,))[0]

    def asked(self, name: str) -> list[str]:
        """What is asked for an option of sbatch, by the build and the job."""
        return [value for given, value in self.options if given == name]

    def text(self, path: str) -> str:
        place = self.folder / path
        return place.read_text(errors="surrogateescape") if place.exists() else ""

    @property
    def has_build(self) -> bool:
        return (self.folder / "build.slurm").exists()

    @property
    def has_container(self) -> bool:
        return not self.batch_script and "--container-image" in self.text("recipes/job.slurm")

    @property
    def mfa(self) -> str:
        """yes, no, or unknown: whether the site asks for a second factor, as far as the bundle knows."""
        preflight = self.text("preflight.sh")
        return "unknown" if "find_out" in preflight else "yes" if "need_connection" in preflight else "no"

    @property
    def batch_script(self) -> str:
        """The path of the user's own batch script in the bundle; empty where the bundle has its own."""
        name = self.value("BATCH_SCRIPT")
        return f"recipes/{name}" if name else ""


def read_contents(folder: Path) -> Contents:
    """Look into a bundle. Raises ContentsError where config.sh cannot be read."""
    config = folder / "config.sh"
    if not config.exists() or not (folder / "run_all.sh").exists():
        raise ContentsError(f"{folder} is no bundle: it has no config.sh and run_all.sh")
    values = read_values(config)
    scripts = ["build.slurm"] + ([] if values.get("BATCH_SCRIPT") else ["recipes/job.slurm"])
    words = [*values.get("JOB_OPTIONS", ())]
    for script in scripts:
        if (folder / script).exists():
            words += read_directives((folder / script).read_text(errors="surrogateescape"))
    found = (OPTION.fullmatch(word) for word in words)
    return Contents(folder, values, tuple((match["name"], match["value"]) for match in found if match))


def read_values(config: Path) -> dict[str, tuple[str, ...]]:
    """The values of config.sh, as bash has them."""
    names = re.findall(r"^readonly ([A-Z_]+)=", config.read_text(errors="surrogateescape"), re.MULTILINE)
    shows = [f'printf "%s\\0" {name} "${{#{name}[@]}}" ${{{name}[@]+"${{{name}[@]}}"}}' for name in names]
    script = "\n".join(['. "$1"', *shows])
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script, "bash", config], capture_output=True, check=False
    )
    if done.returncode:
        raise ContentsError(f"{config} cannot be read by bash: {done.stderr.decode(errors='replace').strip()}")
    items = done.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    values: dict[str, tuple[str, ...]] = {}
    while items:
        name, count, *items = items
        values[name] = tuple(items[: int(count)])
        items = items[int(count) :]
    return values
