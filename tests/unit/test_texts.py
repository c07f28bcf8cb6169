"""What each kind of text takes and refuses: everything that its place can hold, and nothing else."""

import re
import subprocess

import pytest

from slurm_bundle import texts
from slurm_bundle.render import render_bundle
from tests.unit.test_plan import plan

ODD = ("it's", 'say "hi"', "a`b`", "a\\b", "a;b&c|d", "<a>", "{{ a }}", "{# a #}", "100%", "#a", "a*?[b]", "!a", "a  b")
WORLD = ("é", "日本　語", "a\u00a0b", "🙂", "👩\u200d👩\u200d👧", "\U0001fae8", "a\u200cb", "\ue000", "\ufe0f")


@pytest.mark.parametrize("text", [*ODD, *WORLD, "$HOME", "~", "-n", " a ", "x" * 5000])
def test_a_line_holds_all_that_can_be_seen_and_what_joins_it(text: str) -> None:
    assert texts.check_line(text) == text


@pytest.mark.parametrize("char", ["\n", "\t", "\r", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u2029"])
def test_a_line_holds_no_control_character(char: str) -> None:
    with pytest.raises(ValueError, match="has the control character") as told:
        texts.check_line(f"a{char}b")
    assert repr(f"a{char}b") in str(told.value)


@pytest.mark.parametrize("char", ["\u200b", "\u202e", "\u2066", "\ufeff", "\u00ad", "\U000e0041"])
def test_a_line_holds_nothing_that_a_reviewer_cannot_see(char: str) -> None:
    with pytest.raises(ValueError, match="which cannot be seen; take it out"):
        texts.check_line(f"a{char}b")


def test_a_directive_is_as_long_as_slurm_takes_it() -> None:
    assert texts.check_header("x" * 1000)
    with pytest.raises(ValueError, match="has 1001 characters, and Slurm takes 1000; write a shorter one"):
        texts.check_header("x" * 1001)


@pytest.mark.parametrize("text", [*ODD, *WORLD, "a:b,c", " a ", "100% {of} (it)", "x" * 254])
def test_a_path_holds_all_that_a_file_system_does(text: str) -> None:
    assert texts.check_cluster_path(f"/{text}/b") == f"/{text}/b"
    assert texts.check_local_path(f"./{text}/b") == f"./{text}/b"


def test_a_path_is_as_long_as_a_file_system_takes_it() -> None:
    for check in (texts.check_cluster_path, texts.check_local_path, texts.check_file_name):
        with pytest.raises(ValueError, match="has a name of 256 bytes, and file systems take 255; shorten it"):
            check(("" if check == texts.check_file_name else "/") + "é" * 128)
    with pytest.raises(ValueError, match="has 4000 bytes, too many for a path"):
        texts.check_cluster_path("/abc" * 1000)


@pytest.mark.parametrize("text", ["$HOME/a", "a/${HOME}", "$(id)", "a$b"])
def test_no_variable_stands_in_a_local_path_since_nothing_expands_it(text: str) -> None:
    with pytest.raises(ValueError, match="and nothing expands variables in it; give the path itself"):
        texts.check_local_path(text)
    assert texts.check_local_path("5$/100$ a") == "5$/100$ a"


@pytest.mark.parametrize("text", ["~nobody-at-all", "~root/x", "~x"])
def test_another_users_home_is_no_local_path_and_no_crash(text: str) -> None:
    with pytest.raises(ValueError, match=f"names another user's home; give the full path, or './{text}'"):
        texts.check_local_path(text)


@pytest.mark.parametrize("text", ["/", ".", "./", "..", "a/..", "~", "~/"])
def test_a_path_that_gen_names_something_after_has_a_name(text: str) -> None:
    with pytest.raises(ValueError, match="ends in no name of its own"):
        texts.check_named_path(text)


def test_a_tilde_in_front_of_an_address_is_refused_since_nothing_expands_it() -> None:
    with pytest.raises(ValueError, match="begins with '~', which nothing expands"):
        texts.check_repo_url("~/engine.git")
    assert texts.check_repo_url("git@host.example.org:~me/engine.git")
    with pytest.raises(ValueError, match="'a:~b c' has the character ' '"):
        texts.check_repo_url("a:~b c")


@pytest.mark.parametrize("text", ["日本　語", "a\u00a0b", "👩\u200d👧", "\U0001fae8"])
def test_a_mount_holds_every_letter_of_the_world(text: str) -> None:
    assert texts.check_mount(f"/{text}:/{text}:ro") == f"/{text}:/{text}:ro"
    with pytest.raises(ValueError, match="which cannot be seen"):
        texts.check_mount(f"/{text}\u202e:/x")


@pytest.mark.parametrize(
    "name", ["UID", "RANDOM", "IFS", "BASH_COMPAT", "_", "TASKS", "WORK_DIR", "code", "SBATCH_QOS"]
)
def test_a_variable_that_would_not_arrive_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"^'{name}' is .* own|^'{name}' is a variable of the job script"):
        texts.check_environment_name(name)


@pytest.mark.parametrize("name", ["HOME", "LC_ALL", "BASH_ENV", "http_proxy", "TMPDIR", "OMP_NUM_THREADS", "RANK"])
def test_any_other_variable_may_be_set(name: str) -> None:
    assert texts.check_environment_name(name) == name


def test_every_variable_that_bash_keeps_to_itself_is_known() -> None:
    """Set each variable that bash has from the start, and look whether a program of a program is told that value."""
    known = subprocess.run(["bash", "-c", "compgen -v"], capture_output=True, text=True, check=True).stdout.split()
    for name in {*known, *texts.BASH_NAMES, "HOSTNAME", "OPTARG", "REPLY", "LANG", "TMOUT"} - {"PATH"}:
        told = subprocess.run(
            ["bash", "-c", f"set -euo pipefail; export {name}='a b'; /bin/sh -c 'bash -c \"env -0\"'"],
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            check=False,
        )
        arrived = f"{name}=a b".encode() in told.stdout.split(b"\0") and not told.stderr
        assert arrived == (name not in texts.BASH_NAMES), name


@pytest.mark.parametrize("recipe", ["single", "mpi", "distributed", "launcher"])
def test_every_variable_of_the_job_script_is_known(recipe: str) -> None:
    """What job.slurm and task.sh assign is a name that env may not have, or one that they take from there."""
    files = {file.path: file.text for file in render_bundle(plan(
        recipe=recipe, node_count=1 if recipe == "single" else 2, gpus_per_node=2, cpus_per_task=3, network="x",
        gpu_clocks="1,2", container_image="ubuntu:24.04", env={}, pass_env=["A"],
    ))}  # fmt: skip
    assigned: set[str] = set()
    for path in ("recipes/job.slurm", "task.sh"):
        code = re.sub(r"^ *#.*$|--[a-z-]+=", "", files[path], flags=re.MULTILINE)
        assigned |= set(re.findall(r"\b([A-Za-z_]\w*)=", code))
        assigned |= set(" ".join(re.findall(r"\blocal ((?:\w+ ?)+)$", code, re.MULTILINE)).split())
    assert assigned - texts.JOB_NAMES <= {
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "PYTHONUNBUFFERED",
    }
    assert {"TASKS", "options", "code", "MARKS"} <= assigned
