"""From the spec to the cluster: what was missing and is then given, what the catalog knows, what a lost line does."""

import hashlib
import json

import pytest

from tests.cluster.conftest import World, wait_for

pytestmark = pytest.mark.both_worlds


@pytest.mark.req("R1", "B15")
def test_what_validate_names_as_missing_is_what_a_run_lacked(world: World) -> None:
    spec = {name: value for name, value in world.spec.items() if name not in ("account", "partition")}
    (world.folder / "job_spec.json").write_text(json.dumps(spec))
    checked = world.gen("validate", "job_spec.json", "--json")
    assert checked.code == 2
    assert [problem["field"] for problem in json.loads(checked.out)["problems"]] == ["account", "partition"]
    given = (f"--set=account={world.spec['account']}", f"--set=partition={world.spec['partition']}")
    assert world.gen("bundle", "job_spec.json", "-o", "out", *given).code == 0
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said


@pytest.mark.req("R2", "R5")
def test_the_catalog_says_where_the_cluster_is_and_what_is_the_same_for_every_job(world: World) -> None:
    (world.folder / "clusters.toml").write_text(
        f'[clusters.login]\nssh_host_pattern = "gen-{{cluster_name}}"\nmfa_style = false\nmin_poll_seconds = 1\n'
        f'account = "{world.spec["account"]}"\npartition = "{world.spec["partition"]}"\n'
        f'default_user_root_dir = "{world.root}"\n'
    )
    taken = dict.fromkeys(("ssh_host", "mfa_style", "account", "partition", "default_user_root_dir", "remote_cwd"))
    world.bundle(slurm_cluster="login", **taken)
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.report()["ssh_host"] == "gen-login"


@pytest.mark.req("R4")
def test_without_a_catalog_the_spec_is_enough_for_a_run(world: World) -> None:
    (world.folder / "clusters.toml").write_text("")
    world.bundle(slurm_cluster=None, poll_seconds=10, default_user_root_dir=None, repo_url=None)
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said


@pytest.mark.req("R55")
def test_while_the_line_is_down_nothing_is_concluded_and_afterwards_it_goes_on(world: World) -> None:
    world.bundle(command="sleep 10; echo all passed")
    running = world.start("run_all.sh")
    wait_for(lambda: world.kept("job.id"))
    (world.folder / "line-down").touch()
    calls = len(world.sessions())
    wait_for(lambda: len(world.sessions()) >= calls + 2)
    (world.folder / "line-down").unlink()
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert "Network is unreachable. Nothing is concluded; asking again" in said
    assert len(world.jobs_submitted()) == 1


@pytest.mark.req("B3")
def test_from_edit_to_submitted_it_takes_three_sessions(world: World) -> None:
    world.bundle()
    for step in ("preflight.sh", "sync.sh", "submit.sh"):
        assert world.run(step).code == 0
    assert len(world.sessions()) == 3


@pytest.mark.req("B16")
@pytest.mark.parametrize("shell", ["GEN_TCSH_HOST", "GEN_FISH_HOST"])
def test_another_login_shell_is_no_matter(world: World, shell: str) -> None:
    world.bundle(ssh_host=world.cluster[shell], slurm_user=None, remote_cwd="~", default_user_root_dir=None)
    ran = world.run("preflight.sh")
    assert ran.code == 0, ran.said


@pytest.mark.req("R54")
@pytest.mark.parametrize("silent", [["sacct"], ["sacct", "scontrol"]])
@pytest.mark.parametrize(("command", "code", "status"), [("echo all passed", 0, "PASSED"), ("exit 7", 1, "FAILED")])
def test_without_accounting_the_end_is_known_all_the_same(
    world: World, silent: list[str], command: str, code: int, status: str
) -> None:
    fakes = world.root / "bin"
    fakes.mkdir()
    for name in silent:
        (fakes / name).write_text('#!/bin/sh\necho "Slurm accounting storage is disabled" >&2\nexit 1\n')
        (fakes / name).chmod(0o755)
    world.bundle(command=command, remote_init=f"export PATH={fakes}:$PATH")
    ran = world.run("run_all.sh")
    assert ran.code == code, ran.said
    assert world.report()["status"] == status
    assert world.report()["slurm_exit"] == f"{0 if code == 0 else 7}:0"


@pytest.mark.req("B19")
@pytest.mark.parametrize("recipe", ["single", "batch"])
def test_a_secret_goes_to_the_job_by_name_and_into_no_file(world: World, recipe: str) -> None:
    secret = "it's a $ecret, 100% \\ \N{LATIN SMALL LETTER E WITH ACUTE}"
    script = world.folder / "own.slurm"
    script.write_text('#!/bin/bash\nprintf %s "$MY_TOKEN" | sha256sum\n')
    own = {"command": None, "script_path": str(script), "success_patterns": ["-"]} if recipe == "batch" else {}
    changes = {"command": 'printf %s "$MY_TOKEN" | sha256sum', **own}
    world.bundle(pass_env=["MY_TOKEN"], **changes)
    lacking = world.run("run_all.sh")
    assert lacking.code == 2
    assert "MY_TOKEN, one of pass_env, is not set here" in lacking.said
    ran = world.run("run_all.sh", env={"MY_TOKEN": secret})
    assert ran.code == 0, ran.said
    assert hashlib.sha256(secret.encode()).hexdigest() in world.report()["excerpt"]["out"][-1]
    # GEN-07: nor into what Slurm keeps of the job.
    kept = world.slurm("scontrol", "write", "batch_script", world.kept("job.id"), "-")
    kept += world.slurm("scontrol", "show", "job", "--details", world.kept("job.id"))
    assert "JobState=COMPLETED" in kept
    assert kept.startswith("#!/")
    assert "$ecret" not in kept
    for folder in (world.out, world.root):
        for path in folder.rglob("*"):
            assert not path.is_file() or b"$ecret" not in path.read_bytes(), path


@pytest.mark.req("R25", "B16")
def test_a_talkative_shell_with_options_in_its_environment_changes_nothing(world: World) -> None:
    exports = (
        "export SBATCH_TIMELIMIT=1 SBATCH_PARTITION=nowhere SQUEUE_STATES=PENDING SQUEUE_FORMAT=%i SACCT_FORMAT=User"
    )
    noise = "echo Welcome to Stampede3; echo 12; echo Submitted batch job 99; printf 'no newline @@gen job=7'"
    world.bundle(remote_init=f"{exports} SLURM_NTASKS=3 SLURM_JOB_NAME=x PYXIS_CONTAINER_IMAGE=y; {noise}")
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert world.jobs_submitted() == [world.kept("job.id")]
    job = world.accounted(world.kept("job.id"), "JobName,Partition,Timelimit,NTasks")
    assert job.startswith(f"llm_research.engine|{world.spec['partition']}|00:10:00|")
