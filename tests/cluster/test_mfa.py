"""A login node that asks for a second factor: the user logs in once, the bundle uses that connection."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import World

pytestmark = pytest.mark.cluster

SOCKET = "ControlPath=~/.ssh/gen-%C"

# What a person does: run the printed command and type the code.
LOGIN = """
set timeout 30
spawn -ignore HUP env PATH=$env(PATH) ssh -fNM -o ControlMaster=yes -o {socket} -o ControlPersist=10m {host}
expect -re {{[Cc]ode: ?}}
send "{code}\\r"
expect eof
wait
"""


@pytest.fixture
def mfa_world(world: World) -> Iterator[World]:
    world.spec["ssh_host"] = world.cluster["GEN_MFA_HOST"]
    Path("~root/.ssh").expanduser().mkdir(mode=0o700, exist_ok=True)  # ssh goes by passwd, not by $HOME
    yield world
    world.run_here("ssh", "-o", SOCKET, "-O", "exit", world.spec["ssh_host"])


def log_in(world: World) -> None:
    """Log in as a person does. A code counts once only: where an earlier test has used it, the next is awaited."""
    host = world.spec["ssh_host"]
    for _ in range(2):
        code = world.run_here("oathtool", "--totp", "--base32", world.cluster["GEN_OTP_SECRET"]).out.strip()
        script = LOGIN.format(socket=SOCKET, host=host, code=code)
        world.run_here("expect", "-c", script)
        if world.run_here("ssh", "-o", SOCKET, "-O", "check", host).code == 0:
            return
        time.sleep(31 - time.time() % 30)
    pytest.fail("the login with a code did not work")


@pytest.mark.req("R8", "R10")
def test_without_a_connection_the_login_command_is_printed_and_with_one_the_job_runs(mfa_world: World) -> None:
    mfa_world.bundle(mfa_style=True)
    ran = mfa_world.run("run_all.sh")
    assert ran.code == 4, ran.said
    assert f"ssh -fNM -o ControlMaster=yes -o {SOCKET} -o ControlPersist=24h gen-mfa" in ran.said
    assert not mfa_world.repo_there.exists()
    log_in(mfa_world)
    ran = mfa_world.run("run_all.sh")
    assert ran.code == 0, ran.said


@pytest.mark.req("R9", "R7")
def test_not_knowing_it_finds_out_and_says_what_to_note(mfa_world: World) -> None:
    mfa_world.bundle(mfa_style=None)
    ran = mfa_world.run("preflight.sh")
    assert ran.code == 4, ran.said
    mfa_world.bundle(mfa_style=None, ssh_host=mfa_world.cluster["GEN_SSH_HOST"])
    ran = mfa_world.run("preflight.sh")
    assert ran.code == 0, ran.said
    assert "note it: mfa_style: false" in ran.said
    mfa_world.bundle(mfa_style=None, ssh_host="no-such-host.invalid")
    assert mfa_world.run("preflight.sh").code == 3


@pytest.mark.req("R7")
def test_told_that_no_factor_is_asked_for_it_does_not_switch(mfa_world: World) -> None:
    mfa_world.bundle(mfa_style=False)
    ran = mfa_world.run("preflight.sh")
    assert ran.code == 3
    assert "mfa_style: true" in ran.said
