"""Failures told well: for each condition the exit code, what was seen, what to do; and nothing is left behind."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import World
from tests.cluster.trouble import Changes, Prepare, Site, meet, open_site

pytestmark = pytest.mark.cluster


@pytest.fixture
def site(world: World) -> Iterator[Site]:
    with open_site(world) as site:
        yield site


def key_of_another(site: Site) -> Changes:
    """The known hosts have another key for the login node than it shows."""
    key = site.world.folder / "another"
    site.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    name = f"[127.0.0.1]:{site.world.cluster['GEN_SSH_PORT']}"
    site.known_hosts(f"{name} {key.with_suffix('.pub').read_text()}")
    return None


def full_scratch(site: Site) -> Changes:
    """The folder for temporary files on the login node has no room."""
    full = site.mount(site.world.root / "tmp", "nr_inodes=1")
    site.start_up(f"export TMPDIR={full}")
    return None


def no_home_there(site: Site) -> Changes:
    site.start_up("HOME=/no/such/home")
    return {"remote_cwd": "~"}


PREFLIGHT: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    "unknown-name": (
        lambda site: {"ssh_host": "no-such-host.invalid"},
        ("cannot reach no-such-host.invalid: ssh: Could not resolve hostname", "Check the name in ssh_host"),
    ),
    "refused-port": (
        lambda site: site.ssh_has(f"Port={site.closed_port()}"),
        ("Connection refused. Check the network, a VPN, and the port in your ssh configuration",),
    ),
    "silent-host": (
        lambda site: site.ssh_has(f"Port={site.silent_port()}"),
        ("timed out", "Check the network, a VPN"),
    ),
    "refused-key": (
        lambda site: site.ssh_has("User=nobody"),
        ("nobody@127.0.0.1: Permission denied (publickey). Check that your key is loaded (ssh-add -l)",),
    ),
    "changed-host-key": (
        key_of_another,
        ("its host key is not the one in your known_hosts. Somebody may stand in between: ask", "(ssh-keygen -f "),
    ),
    "unknown-host-key": (
        lambda site: site.known_hosts(""),
        ("its host key is not in your known_hosts. Log in once by hand (ssh gen-login)",),
    ),
    "no-slurm-there": (
        lambda site: site.lack_there("sbatch", "srun"),
        ("no sbatch srun on the PATH of a plain ssh command; name what sets Slurm up in remote_init", "lacks what is"),
    ),
    "no-git-there": (
        lambda site: site.lack_there("git", "tar"),
        ("on gen-login: no git tar on the PATH of a plain ssh command; have it installed",),
    ),
    "no-bash-there": (
        lambda site: site.start_up("PATH=/nowhere"),
        ("gen-login has no bash on the PATH of a plain ssh command: bash: line 1: bash: command not found",),
    ),
    "shell-that-ends": (
        lambda site: site.start_up("exit 0"),
        ("gen-login let us in, but ran no script: no word came back. Look for what ends or replaces the shell",),
    ),
    "no-home-there": (
        no_home_there,
        ("on gen-login: /no/such/home is not there; make it, or correct remote_cwd",),
    ),
    "no-temporary-folder-there": (
        lambda site: site.start_up("export TMPDIR=/no/such"),
        ("on gen-login: mktemp: failed to create", "/no/such/tmp.", "No such file or directory. Mend that and"),
    ),
    "full-temporary-folder-there": (full_scratch, ("No space left on device. Make room there (df -h, quota), and",)),
    "no-folder-there": (
        lambda site: {"remote_cwd": "/no/such"},
        ("on gen-login: /no/such is not there; make it, or correct remote_cwd or set create_remote_cwd in the spec",),
    ),
    "folder-of-another": (lambda site: {"remote_cwd": "/usr/share"}, ("/usr/share cannot be written to; correct",)),
    "folder-that-cannot-be-made": (
        lambda site: {"remote_cwd": "/usr/share/x", "create_remote_cwd": True},
        ("cannot make /usr/share/x: mkdir: cannot create directory", "Permission denied; correct remote_cwd"),
    ),
    "no-git-here": (lambda site: site.lack_here("git"), ("git is not installed here. Install it",)),
    "no-ssh-here": (lambda site: site.lack_here("ssh"), ("ssh is not installed here. Install it",)),
    "no-repository-here": (
        lambda site: {"repo_root": str(site.world.folder / "tmp"), "repo_url": "ssh://git.example.org/e.git"},
        ("is not a git repository that can be read here: fatal: not a git repository", "Correct repo_root"),
    ),
}


@pytest.mark.req("R7", "R11")
@pytest.mark.parametrize("trouble", PREFLIGHT)
def test_preflight_says_what_is_wrong(site: Site, trouble: str) -> None:
    prepare, words = PREFLIGHT[trouble]
    changes = prepare(site) or {}
    meet(site, "preflight.sh", 3, *words, "run ./preflight.sh again", **changes)


def full_clone(site: Site) -> Changes:
    return {"remote_repo_path": f"{site.mount(site.world.root / 'small', 'size=300k')}/engine"}


def full_for_untracked(site: Site) -> Changes:
    (site.world.repo / "large.bin").write_bytes(bytes(20_000_000))
    return {"remote_repo_path": f"{site.mount(site.world.root / 'small', 'size=16m')}/engine"}


def full_for_extra_files(site: Site) -> Changes:
    (site.world.folder / "large.bin").write_bytes(bytes(2_000_000))
    work = site.mount(site.world.root / "small", "size=500k")
    return {"remote_work_dir": str(work), "extra_files": [str(site.world.folder / "large.bin")]}


def read_only_root(site: Site) -> Changes:
    return {"default_user_root_dir": str(site.mount(site.world.root / "fixed", "ro"))}


def read_only_origin(site: Site) -> Changes:
    site.run("chmod", "-R", "a-w", site.world.origin)
    return None


def hidden_branches(site: Site) -> Changes:
    site.run("git", "-c", "safe.directory=*", "-C", site.world.origin, "config", "receive.hideRefs", "refs/heads")
    return None


def full_here(site: Site) -> Changes:
    site.env["TMPDIR"] = str(site.mount(site.world.folder / "tmp", "size=40k"))
    return None


def no_temporary_folder_here(site: Site) -> Changes:
    site.env["TMPDIR"] = "/no/such"
    return None


def something_in_the_place_of_the_clone(site: Site) -> Changes:
    site.world.repo_there.mkdir()
    return None


PROTECT = (
    'case $1 in refs/heads/main) ;; *) echo "You are not allowed to push to protected branches." >&2; exit 1 ;; esac'
)
NO_ORIGIN = (
    "cannot push to origin (",
    "Check that git push works from here",
    "cannot be told; the next ./sync.sh takes it",
)
NO_WAY_OUT = ("The login node has to reach the repository by itself (try there: git ls-remote ",)

SYNC: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    "hook-of-origin": (
        lambda site: site.hook("pre-receive", "echo Welcome.; echo 'Use your own prefix, see the handbook.'; exit 1"),
        ("refused the branch g", ": Welcome; Use your own prefix, see the handbook. Ask who keeps origin, or"),
    ),
    "hook-of-origin-that-says-nothing": (
        lambda site: site.hook("pre-receive", "exit 1"),
        (": pre-receive hook declined. Ask who keeps origin", "or give another temp_branch in the spec"),
    ),
    "protected-branches": (
        lambda site: site.hook("update", PROTECT),
        (": You are not allowed to push to protected branches; error: hook declined to update refs/heads/",),
    ),
    "hidden-branches": (hidden_branches, (": deny updating a hidden ref. Ask who keeps origin",)),
    "read-only-origin": (
        read_only_origin,
        (": remote unpack failed: unable to create temporary object directory. Ask who keeps origin",),
    ),
    "no-network-to-origin": (
        lambda site: site.move_origin(f"ssh://127.0.0.1:{site.closed_port()}/x/engine.git"),
        (*NO_ORIGIN, "ssh: connect to host 127.0.0.1 port", "Connection refused. Check"),
    ),
    "no-network-to-origin-by-http": (
        lambda site: site.move_origin(f"http://me:secret@127.0.0.1:{site.closed_port()}/x/engine.git"),
        (*NO_ORIGIN, "(http://127.0.0.1:", "Failed to connect"),
    ),
    "origin-that-is-gone": (
        lambda site: site.move_origin(f"{site.world.cluster['GEN_ORIGIN_URL']}/gone/engine.git"),
        (*NO_ORIGIN, "does not appear to be a git repository. Check"),
    ),
    "no-way-out-of-the-cluster": (
        lambda site: {"repo_url": f"ssh://127.0.0.1:{site.closed_port()}/x/engine.git"},
        (*NO_WAY_OUT, "on gen-login: cannot clone ssh://127.0.0.1:", ": ssh: connect to host 127.0.0.1 port"),
    ),
    "no-key-on-the-cluster": (
        lambda site: {
            "repo_url": f"{site.world.cluster['GEN_ORIGIN_URL'].replace('gen-origin', 'nobody@gen-origin')}/x"
        },
        ("nobody@127.0.0.1: Permission denied (publickey). Give the login node a key that the repository knows (try",),
    ),
    "something-in-the-place-of-the-clone": (
        something_in_the_place_of_the_clone,
        ("/engine is there, but is no clone of git; move it away, or set remote_repo_path",),
    ),
    "read-only-root": (
        read_only_root,
        (": Read-only file system. Give a place that you can write to in the spec, and",),
    ),
    "root-of-another": (
        lambda site: {"default_user_root_dir": "/usr/share/x"},
        ("cannot make /usr/share/x: mkdir: cannot create directory", ": Permission denied. Give a place that you can"),
    ),
    "full-disk-for-the-clone": (full_clone, ("cannot c", "Make room there (df -h, quota), and")),
    "full-disk-for-untracked-files": (
        full_for_untracked,
        ("cannot unpack the untracked files in", "No space left on device. Make room there (df -h, quota), and"),
    ),
    "full-disk-for-extra-files": (
        full_for_extra_files,
        ("cannot unpack into", "./large.bin: ", "Make room there (df -h, quota), and"),
    ),
    "no-extra-file": (
        lambda site: {"extra_files": ["/no/such.bin"]},
        ("/no/such.bin, one of extra_files, is not here. Correct extra_files in the spec",),
    ),
    "no-repository-here": (
        lambda site: {"repo_root": str(site.world.folder / "bin"), "repo_url": "ssh://git.example.org/e.git"},
        ("cannot read the repository ", ": fatal: not a git repository", "Correct repo_root in the spec"),
    ),
    "full-disk-here": (full_here, ("cannot take in the changes of", "is there room in")),
    "no-temporary-folder-here": (
        no_temporary_folder_here,
        ("cannot make a folder for temporary files", "Set TMPDIR to a folder that can be written to, and"),
    ),
    "no-tar-here": (lambda site: site.lack_here("tar"), ("tar is not installed here. Install it",)),
}


@pytest.mark.req("R19", "B1")
@pytest.mark.parametrize("trouble", SYNC)
def test_sync_says_what_is_wrong_and_leaves_no_branch(site: Site, trouble: str) -> None:
    prepare, words = SYNC[trouble]
    changes = prepare(site) or {}
    ran = meet(site, "sync.sh", 5, *words, **changes)
    assert "run ./sync.sh again" in ran.said or "make the bundle again" in ran.said
    assert "secret" not in ran.said


SUBMIT: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    "wrong-partition": (
        lambda site: {"partition": "nowhere"},
        (
            "sbatch refused: invalid partition specified: nowhere; ",
            "Correct partition in the spec (sinfo there lists them)",
        ),
    ),
    "wrong-account": (
        lambda site: {"account": "nobody"},
        ("Invalid account or account/partition combination specified", "Correct account in the spec (sacctmgr show"),
    ),
    "limit-over-the-partition": (
        lambda site: {"partition": site.world.cluster["GEN_PARTITION_SHORT"], "time_limit": "2h"},
        ("Requested time limit is invalid", "Lower the time limit in the spec (sinfo --format='%P %l' there lists"),
    ),
    "too-many-nodes": (
        lambda site: {"recipe": "mpi", "node_count": 3, "required_devices_per_node": 1},
        ("Ask for less in the spec (sinfo --Node --long there lists the nodes)",),
    ),
    "too-much-memory": (
        lambda site: {"mem": "9000G"},
        ("Memory specification can not be satisfied; ", "Ask for less in the spec (sinfo --Node --long there lists"),
    ),
    "unknown-option": (
        lambda site: {"sbatch_options": ["--no-such-option"]},
        ("unrecognized option '--no-such-option'", "Correct sbatch_options in the spec"),
    ),
    "read-only-work-folder": (
        lambda site: {"remote_work_dir": str(site.mount(site.world.root / "fixed", "ro"))},
        ("cannot make", "/scripts-", ": Read-only file system. ", "Give a place that you can write to in the spec"),
    ),
    "full-disk-for-the-scripts": (
        lambda site: {"remote_work_dir": str(site.mount(site.world.root / "small", "size=8k"))},
        ("cannot write into", ": Cannot write: No space left on device. ", "Make room there (df -h, quota), and"),
    ),
}


@pytest.mark.req("R25", "R54")
@pytest.mark.parametrize("trouble", SUBMIT)
def test_submit_says_what_is_wrong_and_that_nothing_was_submitted(site: Site, trouble: str) -> None:
    prepare, words = SUBMIT[trouble]
    changes = prepare(site) or {}
    ran = meet(site, "submit.sh", 7, "on gen-login: ", "Nothing was submitted. ", *words, **changes)
    assert "run ./submit.sh again" in ran.said or "make the bundle again" in ran.said


@pytest.mark.req("R25", "R27")
def test_a_build_that_slurm_refuses_is_told_as_a_job_is(site: Site) -> None:
    words = ("sbatch refused: invalid partition specified: nowhere", "Nothing was submitted. Correct partition in the")
    meet(site, "submit_build.sh", 7, *words, partition="nowhere", build_project=True, build_command="true")


@pytest.mark.req("R55", "R19")
@pytest.mark.parametrize("step", ["sync.sh", "submit.sh", "collect.sh", "cleanup.sh"])
def test_a_login_node_that_is_not_there_leads_to_no_conclusion(site: Site, step: str) -> None:
    site.world.state.mkdir(parents=True)
    (site.world.state / "status").write_text("FAILED\n")
    words = ("no answer from gen-login: ssh: connect to host", "Connection refused. Nothing was concluded; run ./")
    site.ssh_has(f"Port={site.closed_port()}")
    meet(site, step, 13, *words)


@pytest.mark.parametrize("step", ["preflight.sh", "sync.sh", "submit.sh"])
def test_a_full_disk_here_stops_a_step_before_it_does_anything(site: Site, step: str) -> None:
    state = site.mount(site.world.folder / "small", "size=4k")
    (state / "full").write_bytes(bytes(4096))
    site.env["GEN_STATE_DIR"] = str(state)
    words = f"cannot write to {state}: No space left on device. Set GEN_STATE_DIR to a folder that can be written to"
    meet(site, step, 2, words, f"run ./{step} again")
    assert not (site.world.folder / "ssh-calls").exists()


@pytest.mark.req("R19")
def test_a_branch_that_origin_does_not_let_go_is_told_and_the_code_is_there_all_the_same(site: Site) -> None:
    world = site.world
    site.run("git", "-c", "safe.directory=*", "-C", world.origin, "config", "receive.denyDeletes", "true")
    world.bundle()
    ran = world.run("sync.sh")
    assert ran.code == 0
    branch = world.kept("branch")
    assert f"refused to take off the branch {branch}: error: denying ref deletion" in ran.said
    site.run("git", "-c", "safe.directory=*", "-C", world.origin, "config", "receive.denyDeletes", "false")
    world.bundle(model_name="another")
    assert world.run("sync.sh").code == 0
    assert world.branches_on_origin() == ["main"]


def test_without_a_home_here_or_there_a_run_goes_on(site: Site) -> None:
    site.start_up("unset HOME")
    site.world.bundle(remote_cwd="~")
    for step in ("preflight.sh", "sync.sh"):
        ran = site.world.run(step, env={"HOME": "/no/such/home"})
        assert ran.code == 0, ran.said
