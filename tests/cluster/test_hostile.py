"""Hostile values on their whole way, through ssh, sbatch, srun and the container: they arrive as they were."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from slurm_bundle.quoting import sbatch
from tests.cluster.conftest import World
from tests.hostile import TRICKS, is_text

pytestmark = pytest.mark.cluster

# What a folder on the cluster can be called: no $, which nothing expands.
FOLDER = 'a b (c) it\'s "q" `id` é🙂 [x]* ;&|<>!#{y},=:@~'
MOUNTABLE = "a b (c) it's é🙂 [x]* ;&|<>!#{y}=@~"
TEXTS = [text for text in (*TRICKS, "x" * 4096, "'\"\\$`!\n" * 585) if all(map(is_text, text))]
ENVIRONMENT = {f"ODD_{number}": text for number, text in enumerate(TEXTS)} | {"EMPTY": "", "PYTHONUNBUFFERED": "0"}
# What the scripts on the login node set for themselves.
OWN = {"LC_ALL", "GIT_SSH_COMMAND", "GIT_TERMINAL_PROMPT"}

# Tells the words that it was called with, and its environment, in files of the work folder.
TELL = """import os, sys

name = os.environ["WORK_DIR"] + "/" + sys.argv.pop(1) + os.environ.get("SLURM_PROCID", "0")
open(name + ".argv", "w").write(repr(sys.argv[1:]))
open(name + ".env", "wb").write(open("/proc/self/environ", "rb").read())
"""
COMMAND = """# a comment first
python3 'tell it.py' one \\
    '{"lr": 1e-3, "name": "it'"'"'s $HOME `date` !x"}' 'a|b(c)' "two
lines" $'tab\\there' '' -n --help '~' '*' 'é🙂' "$ODD_0" "${ODD_1}" {a,b} \\\\ "\\$HOME" # and a comment
python3 'tell it.py' two "$(cat <<'END'
here's a "document" with $HOME and `id`
EOF
END
)" && echo "it's \\"all\\" passed \\$? [x]* \\d"
"""


def read_environment(path: Path) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in path.read_bytes().split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def tell_here(world: World, folder: Path) -> list[str]:
    """Run the command here, by a bash as the nodes have it, for what its program is told."""
    folder.mkdir()
    env = {"PATH": "/usr/bin:/bin", **ENVIRONMENT, "WORK_DIR": str(folder)}
    subprocess.run(["bash", "-c", COMMAND], cwd=world.repo, env=env, check=True, capture_output=True)
    return [(folder / f"{name}0.argv").read_text() for name in ("one", "two")]


def name_and_comment(world: World) -> str:
    return world.slurm("squeue", "--noheader", "--states=all", f"--jobs={world.kept('job.id')}", "--format=%j|%k")


@pytest.mark.req("R17", "R20", "R30", "R54")
def test_words_variables_and_folders_arrive_in_the_job_as_they_are(world: World) -> None:
    (world.repo / "tell it.py").write_text(TELL)
    odd_file = world.folder / 'it\'s 5$ "100%" é.txt'
    odd_file.write_text("extra")
    root = f"{world.root}/{FOLDER}"
    work = Path(root, "engine", "kept", FOLDER)
    world.bundle(
        command=COMMAND,
        env=ENVIRONMENT,
        remote_cwd=root,
        default_user_root_dir=root,
        create_remote_cwd=True,
        remote_work_dir=str(work),
        job_name="Big  job, 50% (a&b) [c]*",
        comment="two  blanks, (a|b) & 50%=x",
        extra_files=[odd_file.name],
        success_patterns=['it\'s "all" passed $? [x]* \\d'],
        failure_patterns=["`nope`", "$(nope)"],
        hang_patterns=["'hang' $(x) \\"],
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert [(work / f"{name}0.argv").read_text() for name in ("one", "two")] == tell_here(world, world.folder / "here")
    seen = read_environment(work / "one0.env")
    assert {name: seen.get(name) for name in ENVIRONMENT} == ENVIRONMENT
    assert Path(seen["WORK_DIR"]) == work
    assert not OWN & set(seen)
    assert (work / odd_file.name).read_text() == "extra"
    assert name_and_comment(world) == "Big  job, 50% (a&b) [c]*|two  blanks, (a|b) & 50%=x"
    report = world.report()
    assert report["logs"]["out"] == str(work / f"slurm-{world.kept('job.id')}.out")
    assert report["excerpt"]["out"][-1] == 'it\'s "all" passed $? [x]* \\d'
    # Another sync leaves the logs of this run alone: they are no leftovers in the clone.
    assert world.run("sync.sh").code == 0
    assert (work / "one0.argv").exists()
    assert not list(world.root.rglob("PWNED"))
    assert not list(world.folder.rglob("PWNED"))


@pytest.mark.req("R32", "B10")
def test_in_a_container_they_arrive_on_each_task_and_odd_folders_are_mounted(world: World) -> None:
    (world.repo / "tell it.py").write_text(TELL)
    data = world.root / f"data {MOUNTABLE}"
    data.mkdir()
    (data / "here").write_text("mounted")
    seen = f"/mnt/{MOUNTABLE}/here"
    work = f"{world.root}/work {MOUNTABLE}"
    world.bundle(
        recipe="distributed",
        node_count=2,
        command=f'python3 \'tell it.py\' task "$RANK" {shlex.quote(FOLDER)} "$(cat {shlex.quote(seen)})"',
        env=ENVIRONMENT,
        remote_repo_path=f"{world.root}/clone {MOUNTABLE}",
        remote_work_dir=work,
        container_image=world.cluster["GEN_IMAGE"],
        mounts=[f"{data}:/mnt/{MOUNTABLE}:ro"],
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    for rank in range(2):
        assert Path(work, f"task{rank}.argv").read_text() == repr([str(rank), FOLDER, "mounted"])
        given = read_environment(Path(work, f"task{rank}.env"))
        assert {name: given.get(name) for name in ENVIRONMENT} == ENVIRONMENT
    assert not list(world.root.rglob("PWNED"))


@pytest.mark.req("R34")
def test_in_a_batch_script_of_ones_own_they_arrive_as_well(world: World) -> None:
    name = 'it\'s my "own" é🙂 [x]*.slurm'
    (world.folder / name).write_text('#!/bin/bash\n#SBATCH --job-name=other\nenv -0 >"$WORK_DIR/env"; echo "$ODD_3"\n')
    work = Path(world.root, "work", FOLDER)
    given = {name: text for name, text in ENVIRONMENT.items() if not name.islower()}
    world.bundle(
        command=None,
        script_path=name,
        env=given,
        remote_work_dir=str(work),
        success_patterns=[ENVIRONMENT["ODD_3"]],
        comment="own (a|b)",
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    seen = read_environment(work / "env")
    assert {name: seen.get(name) for name in given} == given
    assert not OWN & set(seen)
    assert name_and_comment(world) == "llm_research.engine|own (a|b)"


def test_sbatch_reads_every_directive_as_it_was_written(world: World) -> None:
    values = [
        "a",
        "a b",
        "a  b",
        "50%",
        "%j%x",
        "a,b:c",
        "(a|b)&c*2",
        "[r1|r2]",
        "x=y",
        "@a+b/c",
        "-x-",
        "a -- b",
        "*" * 9,
    ]
    values += [
        "".join(chr(code) for code in range(32, 127) if chr(code) not in "\"'#\\$`;<>?!^{}~").strip(),
        "x" * 1000,
    ]
    scripts = world.root / "directives"
    scripts.mkdir()
    for number, value in enumerate(values):
        text = f"#!/bin/sh\n#SBATCH {sbatch(f'--comment={value}')}\n#SBATCH --begin=now+1hour\ntrue\n"
        (scripts / f"{number:02}.slurm").write_text(text)
    account, partition = world.cluster["GEN_ACCOUNT"], world.cluster["GEN_PARTITION"]
    each = f'for f in *.slurm; do sbatch --parsable --hold -A {account} -p {partition} "$f"; done'
    submitted = world.slurm(
        "runuser", "-u", world.cluster["GEN_USER"], "--", "sh", "-c", f"cd {scripts} && {each}"
    ).split()
    try:
        shown = [world.slurm("scontrol", "show", "job", job) for job in submitted]
    finally:
        world.slurm("scancel", *submitted)
    read = [next(line for line in job.splitlines() if "Comment=" in line).strip() for job in shown]
    assert read == [f"Comment={value}" for value in values]


@pytest.mark.req("R1")
def test_what_cannot_go_there_is_refused_before_anything_is_written(world: World) -> None:
    wrong = {
        "job_name": "a\nb",
        "comment": "$USER",
        "remote_work_dir": "$HOME/x",
        "mounts": ["/a,b:/c", "/a:b:/c", "~you/x:/x"],
        "container_name": "a b",
        "env": {"UID": "1", "TASKS": "2", "A\x00": "3"},
    }
    (world.folder / "job_spec.json").write_text(json.dumps({**world.spec, **wrong, "container_image": "a:b"}))
    made = world.gen("bundle", "job_spec.json", "-o", "out")
    assert made.code == 2
    told = made.said.splitlines()
    for place in ("job_name", "comment", "remote_work_dir", "mounts[0]", "mounts[1]", "mounts[2]", "container_name"):
        assert len([line for line in told if f": {place}: " in line]) == 1, told
    assert len([line for line in told if ": env." in line]) == 3
    assert not world.out.exists()
