"""Resolving: where each value comes from, and what is said when it comes from nowhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.catalog import Catalog, load_catalog
from slurm_bundle.plan import Plan, resolve_plan
from slurm_bundle.problems import SpecError
from slurm_bundle.resolving import Missing
from slurm_bundle.rules import Surroundings
from slurm_bundle.spec import check_values, read_spec
from slurm_bundle.texts import check_job_name

BASE: dict[str, Any] = {
    "ssh_host": "bigiron",
    "mfa_style": False,
    "remote_cwd": "/home/a/runs",
    "account": "acct",
    "partition": "main",
    "repo_root": "/src/engine",
    "repo_url": "git@git.example.org:a/engine.git",
    "command": "make test",
    "build_project": False,
}
HERE = Surroundings(user="me", repo_root=Path("/src/engine"), origin_url="https://git.example.org/a/other.git")


def plan(catalog: Catalog | None = None, here: Surroundings = HERE, **changes: Any) -> Plan:
    values = {name: value for name, value in {**BASE, **changes}.items() if value is not ...}
    return resolve_plan(check_values(values), catalog or load_catalog(None, explicit=False), here)


def problems(**changes: Any) -> tuple[Any, ...]:
    with pytest.raises(SpecError) as caught:
        plan(**changes)
    return caught.value.problems


def origin(made: Plan, name: str) -> str:
    return next(value.origin for value in made.values if value.name == name)


@pytest.mark.req("R4")
def test_without_a_catalog_the_spec_is_enough() -> None:
    assert plan()["ssh_host"] == "bigiron"


@pytest.mark.req("R1")
def test_everything_that_is_missing_is_named_at_once_with_where_it_can_come_from() -> None:
    found = problems(ssh_host=..., account=..., partition=..., remote_cwd=..., command=..., repo_url=...)
    missing = {problem.field: problem.message for problem in found if isinstance(problem, Missing)}
    assert set(missing) == {"ssh_host", "account", "partition", "remote_cwd", "command"}
    assert "the catalog" in missing["ssh_host"]
    assert "--set ssh_host=" in missing["ssh_host"]


@pytest.mark.req("R6")
def test_what_is_derived_says_from_what() -> None:
    made = plan(
        total_required_devices=17,
        required_devices_per_node=8,
        recipe="mpi",
        workflow_type="bench",
        work_dir="/src/engine/work_dirs/w1",
    )
    assert (made["node_count"], made["job_name"]) == (3, "acct.bench")
    assert made["remote_repo_path"] == "/home/a/runs/engine"
    assert made["remote_work_dir"] == "/home/a/runs/engine/work_dirs/w1"
    assert origin(made, "node_count").startswith("derived: total_required_devices")
    assert plan(workflow_type="bench", model_name="llama")["job_name"] == "acct.llama"


@pytest.mark.req("R6")
def test_what_is_given_is_taken_as_it_is() -> None:
    given: dict[str, Any] = {
        "job_name": "mine",
        "remote_repo_path": "/x/y",
        "remote_work_dir": "/z",
        "default_user_root_dir": "/lustre/me",
    }
    made = plan(**given, work_dir="/a/b")
    assert {name: made[name] for name in given} == given
    assert origin(made, "job_name") == "spec: job_name"


@pytest.mark.req("R5")
def test_ssh_host_comes_from_the_pattern_of_the_catalog(tmp_path: Path) -> None:
    file = tmp_path / "clusters.toml"
    pattern = "{slurm_user}@login.{cluster_name}.example.org"
    file.write_text(f'[clusters.aurora]\nssh_host_pattern = "{pattern}"\nmfa_style = false\naccount = "theirs"\n')
    made = plan(load_catalog(file, explicit=True), ssh_host=..., slurm_cluster="aurora", slurm_user="u1", account=...)
    assert made["ssh_host"] == "u1@login.aurora.example.org"
    assert origin(made, "account") == "catalog: account"
    assert plan(load_catalog(file, explicit=True), slurm_cluster="aurora")["ssh_host"] == "bigiron"


def test_an_explicit_empty_array_is_an_answer_too() -> None:
    assert plan(hang_patterns=[])["hang_patterns"] == ()
    assert plan()["hang_patterns"] == ("hang detected",)


def test_the_origin_of_the_clone_stands_in_for_repo_url() -> None:
    made = plan(repo_url=...)
    assert made["repo_url"] == "https://git.example.org/a/other.git"
    assert origin(made, "repo_url").startswith("git: ")


def test_the_recipe_follows_from_one_node_or_the_batch_script_and_is_asked_for_otherwise() -> None:
    assert plan()["recipe"] == "single"
    assert plan(command=..., script_path="job.slurm")["recipe"] == "batch"
    assert [problem.field for problem in problems(node_count=2)] == ["recipe"]


def test_a_single_process_on_several_nodes_is_refused() -> None:
    assert "2 is not allowed with the recipe single" in problems(node_count=2, recipe="single")[0].message


@pytest.mark.req("R36")
@pytest.mark.parametrize(("gpus", "options"), [(8, ["--gpus-per-node=8"]), (None, []), (..., [])])
def test_gpus_are_asked_for_when_they_are_set_and_else_not(gpus: Any, options: list[str]) -> None:
    made = plan(gpus_per_node=gpus, build_project=True, container_image="ubuntu:24.04")
    for of in ("job_options", "build_options"):
        assert [option for option in made.holes[of] if "gpu" in option] == options


@pytest.mark.req("R36")
def test_an_explicit_null_outweighs_what_was_found_on_the_cluster() -> None:
    assert plan(gpus_per_node=None, slurm_params={"gpus_per_node": 8})["gpus_per_node"] is None


@pytest.mark.req("R23")
@pytest.mark.parametrize(
    ("device", "arch"),
    [
        *(("B200", "100-real"), ("GB200", "100-real"), ("B300", "100-real"), ("GB300", "100-real")),
        *(("H100", "90-real"), ("h200", "90-real"), ("L40S", "89-real"), ("A100", "80-real")),
        *(("X1", "100-real"), (..., "100-real")),
    ],
)
def test_the_device_gives_the_architecture_of_the_build(device: Any, arch: str) -> None:
    assert plan(device_type=device, build_project=True)["build_arguments"] == ("-a", arch, "--nvtx")


@pytest.mark.req("R28")
def test_the_project_is_built_unless_the_spec_says_no() -> None:
    assert "build" in plan(build_project=...).features
    assert "build" not in plan().features


def test_mounts_that_the_job_cannot_do_without_are_added_where_none_covers_them() -> None:
    made = plan(container_image="ubuntu:24.04", mounts=["/home/a:/home/a"])
    assert made["container_mounts"] == ("/home/a:/home/a",)
    made = plan(container_image="ubuntu:24.04", mounts=["/data:/data:ro"])
    assert made["container_mounts"] == ("/data:/data:ro", "/home/a/runs/engine:/home/a/runs/engine")


@pytest.mark.req("R14")
def test_the_branch_is_named_after_user_and_model_with_safe_characters() -> None:
    assert plan(slurm_user="d.o", model_name="llama 3/8b")["temp_branch"] == "d_o_llama_3_8b"
    assert plan(ssh_host="you@bigiron")["temp_branch"] == "you_engine"
    assert plan()["temp_branch"] == "me_engine"


def test_looking_too_often_is_refused() -> None:
    assert "give 10 or more" in problems(poll_seconds=2)[0].message


def test_another_value_makes_another_bundle_id_and_the_same_value_the_same() -> None:
    assert plan()["bundle_id"] == plan()["bundle_id"]
    assert plan()["bundle_id"] != plan(time_limit="1h")["bundle_id"]


@pytest.mark.req("R1")
def test_the_reference_specs_are_read_and_what_is_missing_for_a_run_is_named() -> None:
    data = Path(__file__).parents[1] / "data"
    nothing = Surroundings(user="me", repo_root=None, origin_url=None)
    empty = load_catalog(None, explicit=False)
    assert resolve_plan(read_spec(data / "orchestrated_pytest.json"), empty, HERE)["recipe"] == "batch"
    torchrun = resolve_plan(
        read_spec(data / "by_hand_torchrun.json"), empty, replace(HERE, origin_url="ssh://git@x/engine")
    )
    assert torchrun["recipe"] == "launcher"
    assert torchrun["container_mounts"][1:] == ("~/runs/engine:~/runs/engine",)
    assert torchrun.texts["command.sh"].endswith("train.py --config configs/small.yaml --name 'first try'")
    with pytest.raises(SpecError) as caught:
        resolve_plan(read_spec(data / "auto_select.json"), empty, nothing)
    missing = [problem.field for problem in caught.value.problems if isinstance(problem, Missing)]
    assert missing == ["ssh_host", "remote_cwd", "repo_root", "repo_url", "recipe"]


CATALOG = """
[clusters.aurora]
ssh_host_pattern = "{slurm_user}@login.{cluster_name}.example.org"
mfa_style = true
account = "theirs"
partition = "batch"
default_user_root_dir = "/lustre/u1"
gpus_per_node = 8
device_type = "H200"
mounts = ["/lustre:/lustre"]
mpi = "pmi2"
network = "sharp"
constraint = "fast"
min_poll_seconds = 60
"""


def aurora(tmp_path: Path) -> Catalog:
    (tmp_path / "clusters.toml").write_text(CATALOG)
    return load_catalog(tmp_path / "clusters.toml", explicit=True)


@pytest.mark.req("R2")
def test_a_cluster_of_the_catalog_gives_what_the_spec_leaves_out(tmp_path: Path) -> None:
    left_out: dict[str, Any] = dict.fromkeys(("ssh_host", "mfa_style", "remote_cwd", "account", "partition"), ...)
    chosen: dict[str, Any] = {"slurm_cluster": "aurora", "slurm_user": "u1", "recipe": "mpi", "container_image": "a:1"}
    made = plan(aurora(tmp_path), **left_out, **chosen, poll_seconds=60)
    given = {
        "ssh_host": "u1@login.aurora.example.org",
        "mfa_style": True,
        "remote_cwd": "/lustre/u1",
        "account": "theirs",
        "partition": "batch",
        "gpus_per_node": 8,
        "tasks_per_node": 8,
        "device_type": "H200",
        "mounts": ("/lustre:/lustre",),
        "mpi_plugin": "pmi2",
        "network": "sharp",
        "constraint": "fast",
    }
    assert {name: made[name] for name in given} == given
    assert all(origin(made, name).startswith(("catalog: ", "derived: ")) for name in given)


def test_mounts_of_the_catalog_do_not_ask_for_a_container(tmp_path: Path) -> None:
    made = plan(aurora(tmp_path), slurm_cluster="aurora", poll_seconds=60)
    assert (made["container_runtime"], made["container_mounts"]) == ("none", ())
    assert problems(mounts=["/a:/a"], container_runtime="none")[0].message.startswith("mounts need a container")


@pytest.mark.req("R2")
def test_the_spec_outweighs_the_catalog(tmp_path: Path) -> None:
    own: dict[str, Any] = {"slurm_cluster": "aurora", "gpus_per_node": 4, "poll_seconds": 60}
    made = plan(aurora(tmp_path), **own)
    assert (made["account"], made["partition"], made["gpus_per_node"]) == ("acct", "main", 4)
    assert origin(made, "gpus_per_node") == "spec: gpus_per_node"


@pytest.mark.req("B24")
def test_a_site_can_raise_the_least_time_between_two_looks(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="give 60 or more"):
        plan(aurora(tmp_path), slurm_cluster="aurora", poll_seconds=30)
    assert plan(poll_seconds=10)["poll_seconds"] == 10


@pytest.mark.req("R5")
@pytest.mark.parametrize("slurm_user", ["u1", "d.o", "u1@corp"])
def test_the_user_goes_into_the_host_as_it_is(tmp_path: Path, slurm_user: str) -> None:
    made = plan(aurora(tmp_path), ssh_host=..., slurm_cluster="aurora", slurm_user=slurm_user, poll_seconds=60)
    assert made["ssh_host"] == f"{slurm_user}@login.aurora.example.org"
    assert made["slurm_user"] == slurm_user


@pytest.mark.req("R5")
def test_without_a_host_and_a_user_to_fill_the_pattern_with_the_host_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        plan(aurora(tmp_path), ssh_host=..., slurm_cluster="aurora", poll_seconds=60)
    assert [problem.field for problem in caught.value.problems if isinstance(problem, Missing)] == ["ssh_host"]


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("fields", "nodes"),
    [
        ({"total_required_devices": 16, "required_devices_per_node": 8}, 2),
        ({"total_required_devices": 17, "required_devices_per_node": 8}, 3),
        ({"total_required_devices": 1, "required_devices": 8}, 1),
        ({"total_required_devices": 16}, 1),
        ({"required_devices_per_node": 8}, 1),
        ({"total_required_devices": 16, "required_devices_per_node": 8, "node_count": 5}, 5),
    ],
)
def test_nodes_are_what_the_devices_need_rounded_up(fields: dict[str, Any], nodes: int) -> None:
    assert plan(**fields, recipe="mpi")["node_count"] == nodes


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("repo_url", "path"),
    [
        ("git@git.example.org:a/engine.git", "/root/u/engine"),
        ("https://git.example.org/a/engine", "/root/u/engine"),
        ("https://git.example.org/a/engine.git/", "/root/u/engine"),
        ("git.example.org:engine.git", "/root/u/engine"),
        ("/srv/git/my.engine.git", "/root/u/my.engine"),
    ],
)
def test_the_clone_on_the_cluster_has_the_name_of_the_repository(repo_url: str, path: str) -> None:
    made = plan(repo_url=repo_url, default_user_root_dir="/root/u", work_dir="/x/work_dirs/w 1/")
    assert made["remote_repo_path"] == path
    assert made["remote_work_dir"] == f"{path}/work_dirs/w 1"


@pytest.mark.req("R6")
@pytest.mark.parametrize("root", [None, ""])
def test_without_a_root_of_the_user_remote_cwd_is_used(root: str | None) -> None:
    made = plan(default_user_root_dir=root)
    assert made["remote_repo_path"] == "/home/a/runs/engine"
    assert next(s.value for s in made.settings if s.name == "USER_ROOT") == "/home/a/runs"


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"workflow_type": "pytest"}, "acct.pytest"),
        ({"workflow_type": "pytest", "model_name": "llama"}, "acct.llama"),
        ({"model_name": "llama"}, "acct.llama"),
        ({"workflow_type": "pytest", "job_name": "Mine 1"}, "Mine 1"),
    ],
)
def test_the_job_is_named_after_the_account_and_what_it_does(fields: dict[str, Any], name: str) -> None:
    assert plan(**fields)["job_name"] == name


def test_limits_have_the_defaults_of_the_procedure() -> None:
    made = plan(build_project=True)
    expected = {
        "time_limit": "02:00:00",
        "build_time_limit": "02:00:00",
        "monitor_timeout": 3600,
        "poll_seconds": 30,
        "hang_patterns": ("hang detected",),
        "refresh_paths": ("cpp/",),
    }
    assert {name: made[name] for name in expected} == expected
    assert {origin(made, name) for name in expected} == {"default"}


@pytest.mark.parametrize("recipe", ["distributed", "launcher"])
def test_the_address_of_the_first_node_is_the_recipes_to_set(recipe: str) -> None:
    (problem,) = problems(recipe=recipe, node_count=2, env={"MASTER_PORT": "29500"})
    assert str(problem).startswith("job_spec.json: env: 'MASTER_PORT' is set by the recipe")
    assert dict(plan(env={"MASTER_PORT": "29500"})["environment"]) == {"MASTER_PORT": "29500"}


@pytest.mark.parametrize("name", ["JOB_NAME", "BUNDLE_ID", "kind", "work"])
def test_a_variable_that_the_submitting_script_may_have_itself_is_not_sent_through_it(name: str) -> None:
    assert "may be a variable of the script that submits" in problems(pass_env=[name])[0].message
    batch: dict[str, Any] = {"command": ..., "script_path": "job.slurm"}
    assert problems(custom_env={name: "x"}, **batch)[0].place == "job_spec.json: custom_env"
    assert dict(plan(env={name: "x"})["environment"]) == {name: "x"}
    assert plan(env={"http_proxy": "x"}, **batch)["environment"] == (("http_proxy", "x"),)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("remote_work_dir", "/a,b", "has a comma"),
        ("work_dir", "w:x", "has a colon"),
        ("remote_repo_path", '/it"s', "has the character '\"'"),
        ("remote_cwd", "/a:/b", "has a colon"),
        ("default_user_root_dir", "~/a`b", "has the character '`'"),
        ("repo_url", "https://git.example.org/a/b,c.git", "has a comma"),
    ],
)
def test_a_folder_that_pyxis_cannot_mount_is_refused_by_the_field_that_names_it(
    field: str, value: str, said: str
) -> None:
    (problem,) = problems(**{field: value}, container_image="ubuntu:24.04", build_project=field == "remote_cwd")
    assert problem.place == f"job_spec.json: {field}"
    assert problem.message.startswith(f"{value!r}: the container has to see the folder, and ")
    assert said in problem.message
    without: dict[str, Any] = {field: value}
    assert plan(**without)[field] == value


@pytest.mark.parametrize("model", ["a'b", "$(id)", "a\\b", "team/model", "é", "x" * 4096])
def test_any_name_of_a_model_gives_a_job_and_a_branch_that_there_can_be(model: str) -> None:
    made = plan(model_name=model)
    assert check_job_name(made["job_name"]).startswith("acct.")
    assert len(made["temp_branch"]) < 250


@pytest.mark.parametrize("part", ["%j", "a%%", "%5u", "a\\b"])
@pytest.mark.parametrize("field", ["remote_work_dir", "work_dir", "remote_repo_path", "remote_cwd"])
def test_a_folder_that_slurm_would_take_for_another_is_refused_by_the_field_that_names_it(
    field: str, part: str
) -> None:
    (problem,) = problems(**{field: f"/x/{part}"})
    assert problem.place == f"job_spec.json: {field}"
    assert "which Slurm replaces in the path of a log" in problem.message
