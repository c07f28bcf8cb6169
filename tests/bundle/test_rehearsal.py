"""Bundles against the practice cluster: each scenario ends as it has to, nothing else is touched, nothing is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from slurm_bundle.rehearsal import origin
from slurm_bundle.rehearsal.contents import read_contents
from slurm_bundle.rehearsal.localise import move_paths
from slurm_bundle.rehearsal.practice import Practice, PracticeError
from slurm_bundle.rehearsal.rehearse import RehearsalError, Rehearsed, rehearse, scenarios_for
from slurm_bundle.rehearsal.scenarios import SCENARIOS
from tests.project import git, make_dirty, make_project, photograph

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "generated"
AT_ONCE = 3  # they sleep for most of their time
NOT_FOR_MINIMAL = ("build-failure", "container-not-started")
CASES = [
    *(("minimal", name) for name in SCENARIOS if name not in NOT_FOR_MINIMAL),
    *(("trtllm-2x8", name) for name in ("success", "build-failure", "job-failure", "container-not-started")),
    *(("batch", name) for name in ("success", "job-failure", "mfa-needed")),
    ("awkward-names", "success"),
]


def bundle_of(golden: str) -> Path:
    return GENERATED / golden / "bundle"


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], "Future[Rehearsed]"]]:
    folder = tmp_path_factory.mktemp("rehearsals")
    pool = ThreadPoolExecutor(AT_ONCE)
    yield {
        (golden, name): pool.submit(rehearse, bundle_of(golden), folder / golden / name, name) for golden, name in CASES
    }
    pool.shutdown(cancel_futures=True)


@pytest.mark.req("B5")
@pytest.mark.parametrize(("golden", "scenario"), CASES)
def test_a_scenario_ends_with_its_exit_code_and_status(
    rehearsed: dict[tuple[str, str], "Future[Rehearsed]"], golden: str, scenario: str
) -> None:
    result = rehearsed[golden, scenario].result()
    said = "\n".join(line for run in result.runs for line in run.said)
    assert tuple(run.end for run in result.runs) == result.ends, said
    assert result.lost == ()
    assert result.as_expected
    assert result.told
    assert len({job for job, name, _ in result.jobs}) == len({name for _, name, _ in result.jobs}), "submitted twice"


@pytest.mark.req("B5")
def test_every_call_is_written_down_with_what_it_sent_and_what_it_wrote(
    rehearsed: dict[tuple[str, str], "Future[Rehearsed]"],
) -> None:
    result = rehearsed["trtllm-2x8", "success"].result()
    commands = [(event.side, event.command) for event in result.events]
    assert [command for command in commands if command[1] == "sbatch"] == [("login", "sbatch")] * 2
    assert {("local", "ssh"), ("login", "squeue"), ("login", "sacct"), ("node", "srun")} <= set(commands)
    pushes = [event for event in result.events if event.command == "git" and "push" in event.arguments]
    assert {(event.side, event.code) for event in pushes} == {("local", 0)}
    assert all("git@git.example.org:hpcuser/TensorRT-LLM.git" in event.arguments for event in pushes)
    sync = next(event for event in result.events if any(path.endswith("TensorRT-LLM/hello.py") for path in event.files))
    assert (sync.side, sync.command, sync.code) == ("local", "ssh", 0)
    assert sync.arguments[-3:] == ("hpcuser@login.aurora.example.org", "bash", "-s")
    sent = (result.folder / sync.sent).read_text(errors="replace")
    assert sent.startswith((result.folder / "bundle" / "config.sh").read_text())
    assert (bundle_of("trtllm-2x8") / "login" / "sync.sh").read_text() in sent
    submit = next(event for event in result.events if event.command == "sbatch")
    assert submit.arguments[0] == "--parsable"
    assert submit.folder.startswith(f"{result.folder}/cluster/lustre/users/hpcuser")


@pytest.mark.req("B5")
def test_what_is_rehearsed_is_the_bundle_but_for_where_the_cluster_lies(
    rehearsed: dict[tuple[str, str], "Future[Rehearsed]"],
) -> None:
    result = rehearsed["trtllm-2x8", "success"].result()
    copy, bundle = result.folder / "bundle", bundle_of("trtllm-2x8")
    differing = set()
    for path in bundle.rglob("*"):
        if path.is_file() and (copy / path.relative_to(bundle)).read_bytes() != path.read_bytes():
            differing.add(str(path.relative_to(bundle)))
    assert differing == {"config.sh", "build.slurm", "recipes/job.slurm"} == {moved.path for moved in result.moved}
    for moved in result.moved:
        instead = moved.after.replace(str(result.folder / "cluster"), "")
        assert instead == moved.before or moved.before.startswith("readonly REPO_ROOT="), moved


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with work in it that is not committed, its origin, and a bundle for it that builds and runs it."""
    repo, bare = tmp_path / "engine", tmp_path / "real origin.git"
    repo.mkdir()
    make_project(repo)
    subprocess.run(["git", "clone", "--quiet", "--bare", "--no-hardlinks", repo, bare], check=True)
    git(repo, "remote", "add", "origin", str(bare))
    make_dirty(repo)
    spec = {
        "ssh_host": "bigiron",
        "mfa_style": False,
        "remote_cwd": "/lustre/users/me",
        "account": "proj42",
        "partition": "gpu",
        "repo_root": str(repo),
        "build_project": True,
        "build_command": "mkdir -p cpp/build && make -C cpp build/part_00.o build/main.o",
        "command": 'test -e cpp/build/main.o && cat "sub dir/deep.txt" && echo all passed',
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    gen = str(Path(sys.executable).parent / "gen")
    subprocess.run([gen, "bundle", "spec.json", "-o", "out"], cwd=tmp_path, capture_output=True, check=True)
    return tmp_path


@pytest.mark.req("B1", "B5")
@pytest.mark.parametrize("scenario", ["success", "push-rejected"])
def test_repository_and_origin_are_byte_for_byte_as_they_were(project: Path, scenario: str) -> None:
    folder = project / "rehearsal"
    before = {path: photograph(project / path) for path in ("engine", "real origin.git", "out")}
    result = rehearse(project / "out", folder, scenario, run_commands=True, factor=60)
    assert result.as_expected, result.runs
    assert {path: photograph(project / path) for path in before} == before
    assert {path.name for path in project.iterdir()} == {*before, "spec.json", "rehearsal"}
    if scenario == "success":
        out = next(folder.rglob("slurm-*.out")).read_text()
        assert out.splitlines() == ["untracked sub dir/deep.txt", "all passed"]


@pytest.mark.req("B5")
def test_git_of_a_rehearsal_reaches_no_network_whatever_its_address(tmp_path: Path) -> None:
    with Practice(tmp_path / "p") as practice:
        for side in ("local", "login"):
            words = ["git", "ls-remote", "ssh://git@git.example.org/x.git"]
            command = words if side == "local" else ["ssh", "bigiron", " ".join(words)]
            environment = practice.local_environment()
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert "transport 'ssh' not allowed" in done.stderr


@pytest.mark.req("B5")
def test_the_other_side_sees_nothing_of_this_one(tmp_path: Path) -> None:
    with Practice(tmp_path / "p", hosts={"shell-c": "sh"}) as practice:
        environment = {**practice.local_environment(), "SECRET": "here", "SBATCH_PARTITION": "nowhere"}
        asked = 'env; pwd; command -v squeue; command -v ssh; echo "$0"; cat; exit 7'
        command = [str(practice.folder / "bin" / "local" / "ssh"), "-T", "-o", "BatchMode=yes", "me@shell-c", asked]
        done = subprocess.run(command, env=environment, input="sent", capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        names = {line.split("=")[0] for line in lines if "=" in line}
        assert not {"SECRET", "SBATCH_PARTITION"} & names
        assert f"HOME={practice.home_there}" in lines
        assert lines[-5:] == [
            str(practice.home_there),
            f"{practice.folder}/bin/login/squeue",
            f"{practice.folder}/bin/login/ssh",
            lines[-2],
            "sent",
        ]
        assert lines[-2].endswith("/sh")
        assert done.returncode == 7
        here = practice.run_there("squeue", side="local")
        assert (here.returncode, here.stderr) == (127, "squeue: command not found\n")


def test_time_passes_there_as_fast_as_it_is_told_to(tmp_path: Path) -> None:
    with Practice(tmp_path / "p", factor=1000) as practice:
        before = int(practice.run_there("date", "+%s").stdout)
        assert practice.run_there("sleep", "10m").returncode == 0
        after = int(practice.run_there("date", "+%s").stdout)
        assert after - before >= 600
        assert practice.run_there("date", "-d", "@0", "-u", "+%Y-%m-%d").stdout == "1970-01-01\n"


def test_a_connection_is_kept_open_for_others_and_closed_again(tmp_path: Path) -> None:
    with Practice(tmp_path / "p", hosts={"mfa": "yes"}) as practice:
        options = ("-o", "ControlPath=~/.ssh/gen-%C", "-o", "BatchMode=yes")

        def ssh(*words: str) -> "subprocess.CompletedProcess[str]":
            return practice.run_there("ssh", *options, *words, side="local", stdin=subprocess.DEVNULL)

        refused = ssh("bigiron", "true")
        assert (refused.returncode, "keyboard-interactive" in refused.stderr) == (255, True)
        assert ssh("-O", "check", "bigiron").returncode == 255
        assert ssh("-fNM", "bigiron").returncode == 0
        assert "Master running" in ssh("-O", "check", "bigiron").stderr
        assert ssh("bigiron", "true").returncode == 0
        assert ssh("-G", "bigiron").stdout.splitlines()[-1].startswith(f"controlpath {practice.home}/.ssh/gen-")
        assert ssh("-O", "exit", "bigiron").returncode == 0
        assert ssh("bigiron", "true").returncode == 255


def test_scp_copies_to_the_cluster_and_back(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "file").write_text("text")
    with Practice(tmp_path / "p") as practice:
        there = practice.run_there("scp", "-r", "-q", str(tmp_path / "a b"), "me@bigiron:~/in", side="local")
        assert (there.returncode, (practice.home_there / "in" / "file").read_text()) == (0, "text")
        back = practice.run_there("scp", "bigiron:in/file", str(tmp_path / "back"), side="local")
        assert (back.returncode, (tmp_path / "back").read_text()) == (0, "text")
        assert practice.run_there("scp", "bigiron:none", str(tmp_path), side="local").returncode == 1


@pytest.mark.req("B5")
@pytest.mark.parametrize("real", [True, False])
def test_an_allocation_lives_in_a_tmux_session_and_goes_with_it(tmp_path: Path, real: bool) -> None:
    if real and shutil.which("tmux") is None:
        pytest.skip("there is no tmux here")
    with Practice(tmp_path / "p") as practice:
        if not real:
            practice.wrap("login", "tmux")

        def there(command: str) -> "subprocess.CompletedProcess[str]":
            return practice.run_there("ssh", "bigiron", command, side="local", stdin=subprocess.DEVNULL)

        assert there("tmux has-session -t gen").returncode == 1
        made = there("tmux new-session -d -s gen 'salloc --nodes=2 --time=4:00:00 --job-name=held sleep 1d'")
        assert made.returncode == 0, made.stderr
        wait_until(
            "no allocation", lambda: there("squeue --noheader --format='%j %T %N'").stdout == "held RUNNING n[1-2]\n"
        )
        assert there("tmux has-session -t gen").returncode == 0
        job = there("squeue --noheader --format=%i").stdout.strip()
        ran = there(f"srun --jobid={job} --ntasks=2 --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME'")
        assert sorted(ran.stdout.split()) == ["n1", "n2"]
        assert there("tmux kill-session -t gen").returncode == 0
        wait_until("it is still there", lambda: there("squeue --noheader").stdout == "")
        assert there("tmux has-session -t gen").returncode == 1


# Ends


def processes_of(folder: Path) -> list[str]:
    """The processes that know the folder: by their command line, their environment or where they are."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            known = words + (path / "environ").read_bytes() + bytes((path / "cwd").readlink())
        except OSError:
            continue  # it has ended
        if bytes(folder) in known and int(path.name) != os.getpid():
            found.append(words.decode(errors="replace").replace("\0", " "))
    return found


def has_started(folder: Path) -> bool:
    """Whether a task of the job has left its mark."""
    return any(folder.glob("cluster/home/*/runs/engine/work_dirs/*/scripts-*/log/job.*/0.start"))


def wait_until(what: str, is_so: object, seconds: float = 90) -> None:
    assert callable(is_so)
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def start_rehearsal(
    bundle: Path, folder: Path, tmp_path: Path, options: str = "'timeout', factor=20"
) -> "subprocess.Popen[bytes]":
    """A rehearsal in a process of its own, with a job that runs until it is ended."""
    script = (
        "import sys; from pathlib import Path; from slurm_bundle.rehearsal.rehearse import rehearse\n"
        f"try: result = rehearse(Path(sys.argv[1]), Path(sys.argv[2]), {options})\n"
        "except KeyboardInterrupt: sys.exit(1)\n"
        "sys.exit(result.exit_code)\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", script, bundle, folder],
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.req("B5")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["at once", "while the code is sent", "while the job runs"])
def test_killed_at_any_moment_it_leaves_no_process_and_no_file(tmp_path: Path, number: int, moment: str) -> None:
    folder = tmp_path / "rehearsal"
    running = start_rehearsal(bundle_of("minimal"), folder, tmp_path)
    sign = {
        "at once": lambda: (folder / "keeper.lock").exists(),
        "while the code is sent": lambda: (folder / "state" / "branch").exists(),
        "while the job runs": lambda: has_started(folder),
    }[moment]
    wait_until(moment, sign)
    running.send_signal(number)
    code = running.wait(timeout=60)
    assert code == (130 if number == signal.SIGINT else -number) or moment == "at once"
    wait_until("something goes on", lambda: not processes_of(folder), 10)
    assert list((tmp_path / "home").iterdir()) == list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_commands_of_the_user_that_run_for_real_end_with_it_wherever_they_have_gone(project: Path) -> None:
    far = "(setsid /bin/sleep 300 >/dev/null 2>&1 &)"
    spec = json.loads((project / "spec.json").read_text())
    spec.update(remote_cwd="~/runs", create_remote_cwd=True, build_project=False, command=f"{far}; /bin/sleep 300")
    (project / "spec.json").write_text(json.dumps(spec))
    gen = str(Path(sys.executable).parent / "gen")
    made = [gen, "bundle", "spec.json", "-o", "out", "--force"]
    subprocess.run(made, cwd=project, capture_output=True, check=True)
    folder = project / "rehearsal"
    running = start_rehearsal(project / "out", folder, project, "run_commands=True")
    wait_until("no job", lambda: len([line for line in processes_of(folder) if line.startswith("/bin/sleep")]) == 2)
    running.kill()
    running.wait(timeout=60)
    wait_until("something goes on", lambda: not processes_of(folder), 10)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_even_without_its_keeper_nothing_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "rehearsal"
    running = start_rehearsal(bundle_of("minimal"), folder, tmp_path)
    wait_until("no job", lambda: has_started(folder))
    keeper = next(line for line in processes_of(folder) if line.rstrip().endswith("node keeper"))
    pids = [path.name for path in Path("/proc").glob("[0-9]*") if read(path / "cmdline").replace("\0", " ") == keeper]
    os.kill(int(pids[0]), signal.SIGKILL)
    running.wait(timeout=60)
    wait_until("something goes on", lambda: not processes_of(folder), 20)


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


# What it refuses


def test_what_cannot_be_rehearsed_is_told_before_anything_begins(tmp_path: Path) -> None:
    names = [scenario.name for scenario in scenarios_for(bundle_of("minimal"))]
    assert [name for name in SCENARIOS if name not in names] == [*NOT_FOR_MINIMAL]
    with pytest.raises(RehearsalError, match="it has no build"):
        rehearse(bundle_of("minimal"), tmp_path / "p", "build-failure")
    with pytest.raises(RehearsalError, match="there are: success"):
        rehearse(bundle_of("minimal"), tmp_path / "p", "nonsense")
    assert not (tmp_path / "p").exists()
    with pytest.raises(PracticeError, match="letters, digits"):
        rehearse(bundle_of("minimal"), tmp_path / "a b")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(PracticeError, match="is not empty"):
        rehearse(bundle_of("minimal"), tmp_path / "used")


def test_paths_of_the_cluster_are_moved_and_nothing_else() -> None:
    text = (
        "readonly REMOTE_WORK='/lustre/it'\\''s'\nreadonly REPO_ROOT='/home/me/src'\nreadonly USER_ROOT='~/x'\n"
        "readonly CONTAINER_MOUNTS='/a:/a','/b:/c:ro',\"$HOME\"'/d:/e'\nexport DATA='/lustre/data'\n"
        "export WORK_DIR='/w'\n#SBATCH --output=/lustre/x.out\n#SBATCH --comment=/lustre\nx='/y'\n"
    )
    moved = (
        "readonly REMOTE_WORK='/P/lustre/it'\\''s'\nreadonly REPO_ROOT='/home/me/src'\nreadonly USER_ROOT='~/x'\n"
        "readonly CONTAINER_MOUNTS='/P/a:/a','/P/b:/c:ro',\"$HOME\"'/d:/e'\nexport DATA='/lustre/data'\n"
        "export WORK_DIR='/P/w'\n#SBATCH --output=/P/lustre/x.out\n#SBATCH --comment=/lustre\nx='/y'\n"
    )
    assert move_paths(text, Path("/P")) == moved


def test_a_bundle_is_known_by_its_values_and_what_it_asks_of_slurm() -> None:
    contents = read_contents(bundle_of("batch"))
    assert contents.mfa == "yes"
    assert contents.batch_script == "recipes/job.slurm"
    assert contents.asked("nodes") == ["4"]
    assert read_contents(bundle_of("awkward-names")).value("REPO_ROOT") == "/home/d.o'brien/src/it's \"here\" `now`"
    assert read_contents(bundle_of("trtllm-2x8")).asked("ntasks") == ["1", "16"]


def test_the_practice_origin_has_what_the_repository_has_and_takes_no_room(project: Path) -> None:
    origin.make_origin(project / "practice.git", project / "engine")
    assert (
        origin.ask(project / "practice.git", "rev-parse", "main")
        == git(project / "engine", "rev-parse", "HEAD").strip()
    )
    objects = [path for path in (project / "practice.git" / "objects").rglob("*") if path.is_file()]
    assert [path.name for path in objects] == ["alternates"]
    urls = origin.urls_of(project / "engine")
    assert set(urls) == {str(project / "real origin.git")}
