"""A rehearsal: the whole of a bundle against a practice cluster on this machine, with no network and no root.

run_all.sh and all that it calls run for real; ssh, Slurm and the clock are stand-ins (practice.py), and pushes go to a
practice origin (origin.py). Nothing is written outside of the rehearsal's folder, and the user's repository is only
read. The user's own commands are played, not run, unless `run_commands` says otherwise.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slurm_bundle.problems import GenError
from slurm_bundle.rehearsal import localise, origin
from slurm_bundle.rehearsal.contents import Contents, read_contents
from slurm_bundle.rehearsal.events import Event, read_events
from slurm_bundle.rehearsal.localise import Moved
from slurm_bundle.rehearsal.practice import Practice
from slurm_bundle.rehearsal.scenarios import SCENARIOS, End, Scenario
from slurm_bundle.rehearsal.standins.jobs import Jobs
from slurm_bundle.rehearsal.standins.records import store_record

FACTOR = 120.0  # a poll of 30 s takes a quarter of one
SLOW_FACTOR = 10.0  # where the user's own commands run, which know nothing of our clock
KEPT = ("status", "reason", "advice", "trouble")


class RehearsalError(GenError):
    """There is no such scenario, or it means nothing for this bundle."""


@dataclass(frozen=True)
class Run:
    """A run of run_all.sh: its exit code, what it said, and what it kept of its conclusion."""

    code: int
    said: tuple[str, ...]
    status: str
    reason: str
    advice: str

    @property
    def end(self) -> End:
        return self.code, self.status


@dataclass(frozen=True)
class Rehearsed:
    """How a rehearsal went."""

    scenario: Scenario
    bundle: Path
    folder: Path
    runs: tuple[Run, ...]
    ends: tuple[End, ...]  # how the runs had to end
    events: tuple[Event, ...]
    moved: tuple[Moved, ...]  # the lines in which the rehearsed copy differs from the bundle
    jobs: tuple[tuple[str, str, str], ...]  # id, name and state, at the end
    branches: tuple[str, ...]  # on origin, at the end, that were not there before
    changed: tuple[str, ...]  # files of the user's repository that are not as they were
    interrupted: bool  # whether somebody has interrupted it; then it may have ended in any way
    seconds: float

    @property
    def exit_code(self) -> int:
        return self.runs[-1].code

    @property
    def status(self) -> str:
        return self.runs[-1].status

    @property
    def as_expected(self) -> bool:
        return tuple(run.end for run in self.runs) == self.ends and not self.lost

    @property
    def told(self) -> str:
        """What the user is told in the end: the reason, and what to do next."""
        run = self.runs[-1]
        return f"{run.reason}; next: {run.advice}" if run.advice else run.reason

    @property
    def lost(self) -> tuple[str, ...]:
        """What a run must never leave: a changed repository, a branch on origin."""
        files = tuple(f"changed: {path}" for path in self.changed)
        return (*files, *(f"left on origin: {name}" for name in self.branches))


def outside(text: str, folder: Path, bundle: Path) -> str:
    """A text of a rehearsal in `folder` as it would be outside of it: with the paths that the bundle names."""
    moved = (
        (f"{folder}/cluster", ""),
        (f"{folder}/state", f"{bundle}/.run"),
        (f"{folder}/bundle", str(bundle)),
        (f"{folder}/home", "~"),
    )
    for before, after in moved:
        text = text.replace(before, after)
    return text


def scenarios_for(bundle: Path) -> tuple[Scenario, ...]:
    """The scenarios that mean something for a bundle, in the order of the table."""
    contents = read_contents(bundle)
    return tuple(scenario for scenario in SCENARIOS.values() if scenario.applies(contents))


def rehearse(
    bundle: Path,
    folder: Path,
    scenario: str = "success",
    *,
    run_commands: bool = False,
    factor: float | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> Rehearsed:
    """Rehearse `bundle` in `folder`, which must be empty or not there; it keeps all that there was.

    `on_line` is given each line that run_all.sh says, as it comes. On an interrupt the scripts get one, too, and what
    they make of it is the result. Raises RehearsalError, ContentsError or PracticeError where it cannot begin.
    """
    if scenario not in SCENARIOS:
        raise RehearsalError(f"there is no scenario {scenario}; there are: {' '.join(SCENARIOS)}")
    chosen, contents = SCENARIOS[scenario], read_contents(bundle.resolve())
    if not chosen.applies(contents):
        raise RehearsalError(f"the scenario {scenario} means nothing for {bundle}: it has no {chosen.needs}")
    began = time.monotonic()
    practice = Practice(
        folder,
        site=site_for(contents),
        hosts={"mfa": "yes"} if chosen.name == "mfa-needed" or contents.mfa == "yes" else {},
        faults=chosen.faults_for(contents),
        factor=factor or (SLOW_FACTOR if run_commands else FACTOR),
        plays=None if run_commands else plays_for(contents),
    )
    with practice:
        return Rehearsal(contents, chosen, practice, on_line).run(began)


class Rehearsal:
    """One rehearsal, from the copy of the bundle to what is left in the end."""

    def __init__(
        self, contents: Contents, scenario: Scenario, practice: Practice, on_line: Callable[[str], None]
    ) -> None:
        self.contents, self.scenario, self.practice, self.on_line = contents, scenario, practice, on_line
        self.folder = practice.folder
        self.said: list[str] = []

    def run(self, began: float) -> Rehearsed:
        moved = self.prepare()
        before = origin.photograph(self.repository)
        ends = self.scenario.ends_for(self.contents)
        if self.contents.mfa == "yes" and self.scenario.between != "login":
            self.log_in()
        runs: list[Run] = []
        for _ in ends:
            if runs and self.scenario.between == "login":
                self.log_in()
            runs.append(self.run_once())
            if self.practice.interrupted:
                break
        after = origin.photograph(self.repository)
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        return Rehearsed(
            scenario=self.scenario,
            bundle=self.contents.folder,
            folder=self.folder,
            runs=tuple(runs),
            ends=ends,
            events=read_events(self.folder),
            moved=moved,
            jobs=tuple((job.id, job["name"], job["state"]) for job in Jobs(self.practice.place).all()),
            branches=tuple(self.branches_left()),
            changed=tuple(changed),
            interrupted=self.practice.interrupted,
            seconds=round(time.monotonic() - began, 1),
        )

    def prepare(self) -> tuple[Moved, ...]:
        """The copy of the bundle, the folders of the site, the practice origin, and the way of git to it."""
        practice, contents = self.practice, self.contents
        self.bundle = self.folder / "bundle"
        made_up = practice.home / "repository"
        moved = localise.copy_bundle(contents, self.bundle, practice.cluster, made_up, practice.home / "files")
        copy = read_contents(self.bundle)
        localise.make_folders(copy, practice.home_there)
        self.repository = Path(copy.value("REPO_ROOT"))
        if self.repository == made_up:
            origin.make_repository(made_up)
        refusal = next((fault["err"] for fault in self.scenario.faults if fault["on"] == "origin"), "")
        origin.make_origin(self.folder / "origin.git", self.repository, refusal=refusal)
        urls = [copy.value("REPO_URL"), *origin.urls_of(self.repository)]
        own = origin.own_configuration()
        origin.write_configuration(practice.home, self.folder / "origin.git", urls, own)
        origin.write_configuration(practice.home_there, self.folder / "origin.git", urls)
        roles = {"build": str(self.bundle / "build.slurm"), "job": str(self.bundle / "recipes" / "job.slurm")}
        if contents.batch_script:
            roles["job"], roles["own"] = "", str(self.bundle / contents.batch_script)
        store_record(f"{self.folder}/roles", {role: path for role, path in roles.items() if path})
        return moved

    def log_in(self) -> None:
        """What the user does in a terminal where the site asks for a second factor; preflight.sh says the command."""
        options = ("-fNM", "-o", "ControlMaster=yes", "-o", "ControlPath=~/.ssh/gen-%C", "-o", "ControlPersist=24h")
        self.practice.run_there("ssh", *options, self.contents.value("SSH_HOST"), side="local")

    def run_once(self) -> Run:
        said: list[str] = []

        def hear(line: str) -> None:
            said.append(line)
            self.on_line(line)

        state = self.folder / "state"
        secrets = [f"{name}=made-up-for-a-rehearsal" for name in self.contents.values.get("PASS_ENV", ())]
        words = ["env", f"GEN_STATE_DIR={state}", *secrets, str(self.bundle / "run_all.sh")]
        code = self.practice.run_local(words, hear)
        kept = {name: self.kept(state / name) for name in KEPT}
        return Run(code, tuple(said), kept["status"], kept["reason"] or kept["trouble"], kept["advice"])

    def kept(self, path: Path) -> str:
        return path.read_text(errors="replace").strip() if path.exists() else ""

    def branches_left(self) -> list[str]:
        listed = origin.ask(self.folder / "origin.git", "for-each-ref", "--format=%(refname:short)", "refs/heads")
        return [name for name in listed.splitlines() if name != "main"]


def site_for(contents: Contents) -> dict[str, str]:
    """A cluster that has what the bundle asks for, and a little more."""
    partitions = list(dict.fromkeys(contents.asked("partition"))) or ["batch"]
    nodes = max([1, *(int(text.partition("-")[0]) for text in contents.asked("nodes") if text[:1].isdigit())])
    tasks = max([1, *(int(text) for text in contents.asked("ntasks-per-node") if text.isdigit())])
    cpus = max([1, *(int(text) for text in contents.asked("cpus-per-task") if text.isdigit())])
    gpus = [
        int(text.rpartition(":")[2]) for text in contents.asked("gpus-per-node") if text.rpartition(":")[2].isdigit()
    ]
    return {
        "nodes": f"node[001-{nodes + 1:03d}]",
        "cpus": str(max(64, tasks * cpus)),
        "gpus": str(max([8, *gpus])),
        "memory": "2000000",
        "partitions": " ".join(f"{name}:-1:3600" for name in partitions),
        "lenient": "yes",
        "extern": "yes",
        "pending": "20",
        "configuring": "5",
    }


def plays_for(contents: Contents) -> dict[str, str]:
    """What the bundle looks for in a log, so that what is played in place of the commands can say it."""
    plays = {"build": "Successfully built (in a rehearsal)"}
    for name, setting in (("success", "SUCCESS_PATTERNS"), ("hang", "HANG_PATTERNS")):
        patterns = contents.values.get(setting, ())
        if patterns:
            plays[name] = patterns[0]
    return plays
