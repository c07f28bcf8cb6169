"""The recipes with more than one task: how many run, where, and what each is told."""

from pathlib import Path

import pytest

from tests.cluster.conftest import World

pytestmark = pytest.mark.both_worlds

TWO_BY_TWO = {"node_count": 2, "required_devices_per_node": 2}


def lines_of(world: World) -> list[str]:
    return sorted(Path(world.kept("job.out")).read_text().splitlines())


@pytest.mark.req("R31")
def test_mpi_starts_a_rank_a_gpu_through_the_plugin(world: World) -> None:
    world.bundle(recipe="mpi", command='echo "$PMIX_RANK of $SLURM_NTASKS on $SLURMD_NODENAME"', **TWO_BY_TWO)
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert lines_of(world) == ["0 of 4 on n1", "1 of 4 on n1", "2 of 4 on n2", "3 of 4 on n2"]


@pytest.mark.req("R32")
def test_distributed_tells_each_task_its_rank_and_where_the_first_node_is(world: World) -> None:
    world.bundle(
        recipe="distributed",
        command='echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $((MASTER_PORT - 10000 - SLURM_JOB_ID))"',
        **TWO_BY_TWO,
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    assert lines_of(world) == ["0 0 4 n1 0", "1 1 4 n1 0", "2 0 4 n1 0", "3 1 4 n1 0"]


@pytest.mark.req("R33")
def test_the_launcher_runs_once_a_node_with_its_rendezvous_on_the_first(world: World) -> None:
    launcher = world.root / "bin" / "torchrun"
    launcher.parent.mkdir()
    launcher.write_text('#!/bin/sh\nfor word; do printf "%s|" "$word"; done; echo\n')
    launcher.chmod(0o755)
    world.bundle(
        recipe="launcher",
        command="train.py --name 'first try'",
        remote_init=f"export PATH={launcher.parent}:$PATH",
        **TWO_BY_TWO,
    )
    ran = world.run("run_all.sh")
    assert ran.code == 0, ran.said
    job = world.kept("job.id")
    port = 10000 + int(job) % 20000
    assert lines_of(world) == [
        f"--nnodes=2|--nproc-per-node=2|--node-rank={rank}|--rdzv-backend=c10d|--rdzv-id={job}|"
        f"--rdzv-endpoint=n1:{port}|train.py|--name|first try|"
        for rank in (0, 1)
    ]
    shown = world.accounted(job, "NNodes,NCPUS")
    assert shown.startswith("2|")


@pytest.mark.req("B27", "R54")
def test_one_task_of_two_that_fails_fails_the_job(world: World) -> None:
    others = " && ".join(f'[ -e "$WORK_DIR/{rank}.done" ]' for rank in range(3))
    last = f"until {others}; do sleep 0.1; done; sleep 1; exit 5"
    world.bundle(
        recipe="distributed", command=f'[ "$RANK" != 3 ] || {{ {last}; }}; >"$WORK_DIR/$RANK.done"', **TWO_BY_TWO
    )
    ran = world.run("run_all.sh")
    assert ran.code == 1, ran.said
    assert world.report()["slurm_exit"] == "5:0"
