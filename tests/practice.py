"""The practice cluster as a world for tests: the same names as `scripts/cluster env` gives for the real one."""

import os
from collections.abc import Iterator
from pathlib import Path

from slurm_bundle.rehearsal.practice import Practice

FACTOR = 10  # seconds that pass there in one of ours; the commands of the tests run for real


def make_practice_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """A practice cluster made as the test cluster is, for as long as the tests run."""
    hosts = {"gen-tcsh": "tcsh", "gen-fish": "fish"}
    site = {"accounts": "llm_research interactive", "images": "registry.example.org#tensorrt-llm/devel:1.0"}
    with Practice(folder / "p", site=site, hosts=hosts, factor=FACTOR) as practice:
        origin, root = practice.cluster / "origin", practice.cluster / "users"
        origin.mkdir()
        root.mkdir()
        yield {
            "GEN_CLIENT_BIN": str(practice.folder / "bin" / "local"),
            "GEN_SSH_HOST": "gen-login",
            "GEN_TCSH_HOST": "gen-tcsh",
            "GEN_FISH_HOST": "gen-fish",
            "GEN_USER": practice.home_there.name,
            "GEN_USER_ROOT": str(root),
            "GEN_ACCOUNT": "llm_research",
            "GEN_PARTITION": "batch",
            "GEN_ORIGIN_DIR": str(origin),
            "GEN_ORIGIN_URL": str(origin),
            "GEN_REGISTRY_IMAGE": site["images"],
            "GEN_CONTAINERS": "none",
            "GEN_TELL_IMAGE": "echo devel",
            "PATH": f"{practice.folder}/bin/login:{os.environ['PATH']}",
        }
