from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.catalog import Catalog, choose_cluster, load_catalog
from slurm_bundle.fields import Spec
from slurm_bundle.problems import CatalogError, SpecError

TWO = """
ssh_host_pattern = "{slurm_user}@login.{cluster_name}.example.org"

[clusters.aurora]
mfa_style = true
gpus_per_node = 8
device_type = "H200"
mounts = ["/lustre/models:/models:ro"]

[clusters.aurora.partitions.batch]
max_time = "4:00:00"
nodes = 4

[clusters.bigiron]
ssh_host_pattern = "bigiron"
gpus_per_node = 4
device_type = "B200"
network = "sharp"

[clusters.small]
mfa_style = false
"""


def load(folder: Path, text: str = TWO) -> Catalog:
    path = folder / "clusters.toml"
    path.write_text(text)
    return load_catalog(path, explicit=True)


def refuse(folder: Path, text: str) -> list[str]:
    with pytest.raises(CatalogError) as refusal:
        load(folder, text)
    return [str(problem) for problem in refusal.value.problems]


def choose(catalog: Catalog, **fields: Any) -> str | None:
    cluster = choose_cluster(catalog, Spec.model_validate(fields))
    return cluster.name if cluster else None


def refuse_choice(catalog: Catalog, **fields: Any) -> str:
    with pytest.raises(SpecError) as refusal:
        choose(catalog, **fields)
    (problem,) = refusal.value.problems
    return str(problem)


def test_a_catalog_is_read_with_its_clusters_and_partitions(tmp_path: Path) -> None:
    aurora = load(tmp_path).clusters["aurora"]
    assert aurora.mfa_style is True
    assert aurora.mounts == ("/lustre/models:/models:ro",)
    assert aurora.partitions["batch"].max_time == "4:00:00"
    assert aurora.partitions["batch"].nodes == 4


def test_what_is_absent_is_unknown(tmp_path: Path) -> None:
    clusters = load(tmp_path).clusters
    assert clusters["bigiron"].mfa_style is None
    assert clusters["small"].mfa_style is False
    assert clusters["small"].partitions == {}


def test_a_cluster_without_a_pattern_has_that_of_the_catalog(tmp_path: Path) -> None:
    clusters = load(tmp_path).clusters
    assert clusters["aurora"].ssh_host_pattern == "{slurm_user}@login.{cluster_name}.example.org"
    assert clusters["bigiron"].ssh_host_pattern == "bigiron"


def test_a_missing_catalog_is_an_error_only_where_it_was_named(tmp_path: Path) -> None:
    assert load_catalog(None, explicit=False) == Catalog()
    assert load_catalog(tmp_path / "clusters.toml", explicit=False) == Catalog()
    with pytest.raises(CatalogError, match=r"there is no catalog .*check the path"):
        load_catalog(tmp_path / "clusters.toml", explicit=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "clusters.a.mfa_stile = true",
            "clusters.toml: clusters.a.mfa_stile: unknown field; did you mean 'mfa_style'?",
        ),
        (
            "[clusters.a.partitions.p]\nmax_tim = '1h'",
            "clusters.a.partitions.p.max_tim: unknown field; did you mean 'max_time'?",
        ),
        ("[cluster.a]", "cluster: unknown field; did you mean 'clusters'?"),
        ("clusters.a.name = 'b'", "clusters.a.name: unknown field"),
        ("clusters.a.mfa_style = 'true'", 'expected true or false, got the string "true"; write true without quotes'),
        ("clusters.a.gpus_per_node = '8'", "expected an integer"),
        ("clusters.a.mounts = ['x:/y']", "clusters.a.mounts[0]: 'x:/y': the source is relative"),
        ("clusters.a.partitions.p.max_time = 'long'", "clusters.a.partitions.p.max_time: 'long' is no time limit"),
        ("clusters.a.ssh_host_pattern = '{user}@x'", "has other braces than {slurm_user} and {cluster_name}"),
        ("ssh_host_pattern = '-oX={slurm_user}'", "clusters.toml: ssh_host_pattern: "),
        ("clusters.'a b' = {}", "is no name of a cluster"),
        ("clusters.a = 1", "write [clusters.a]"),
        ("clusters = 1", "write [clusters.NAME]"),
        ("a = !", "clusters.toml:1:5: not TOML here"),
    ],
)
def test_a_wrong_catalog_is_told_with_place_and_way_out(tmp_path: Path, text: str, message: str) -> None:
    (told,) = refuse(tmp_path, text)
    assert message in told


def test_all_problems_of_a_catalog_are_told_at_once(tmp_path: Path) -> None:
    assert len(refuse(tmp_path, "x = 1\n[clusters.a]\nnodes = 0\naccount = '$a'\n[clusters.b]\nmpi = 'p x'")) == 4


@pytest.mark.parametrize("field", ["slurm_cluster", "cluster_name"])
def test_a_named_cluster_is_taken(tmp_path: Path, field: str) -> None:
    assert choose(load(tmp_path), **{field: "aurora"}) == "aurora"


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    told = refuse_choice(load(tmp_path), slurm_cluster="aurra", ssh_host="x")
    assert told == (
        "job_spec.json: slurm_cluster: 'aurra' is not in the catalog; "
        "give one of aurora, bigiron, small; did you mean 'aurora'?"
    )


def test_without_a_catalog_a_name_is_no_error() -> None:
    assert choose(Catalog(), slurm_cluster="aurora", ssh_host="login") is None


def test_a_catalog_of_a_pattern_alone_serves_every_name(tmp_path: Path) -> None:
    catalog = load(tmp_path, 'ssh_host_pattern = "{slurm_user}@{cluster_name}.example.org"')
    assert choose(catalog, slurm_cluster="anything") == "anything"


@pytest.mark.req("R3")
def test_the_only_cluster_with_the_hardware_is_taken(tmp_path: Path) -> None:
    assert (
        choose(load(tmp_path), device_type="h200", required_devices_per_node=8, total_required_devices=32) == "aurora"
    )
    assert choose(load(tmp_path), device_type="B200", required_devices_per_node=2) == "bigiron"


@pytest.mark.req("R3")
@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"device_type": "H200", "total_required_devices": 64}, "aurora: has 4 nodes, 8 are needed; bigiron: has B200"),
        (
            {"device_type": "B200"},
            "aurora: has H200; bigiron: has 4 a node; small: device_type or gpus_per_node is not known",
        ),
    ],
)
def test_no_match_lists_why_each_was_not_taken(tmp_path: Path, fields: dict[str, Any], reasons: str) -> None:
    told = refuse_choice(load(tmp_path), required_devices_per_node=8, **fields)
    assert told.startswith("job_spec.json: device_type: no cluster has 8 ")
    assert reasons in told


@pytest.mark.req("R3")
def test_several_matches_are_listed_with_the_field_to_give(tmp_path: Path) -> None:
    twins = "".join(f"[clusters.{name}]\ndevice_type = 'H100'\ngpus_per_node = 8\n" for name in "ab")
    told = refuse_choice(load(tmp_path, twins), device_type="H100", required_devices_per_node=8)
    assert "several clusters have 8 H100 a node (a: fits; b: fits); give slurm_cluster: a or b" in told


def test_an_ssh_host_needs_no_cluster(tmp_path: Path) -> None:
    assert choose(load(tmp_path), ssh_host="x", device_type="A100", required_devices_per_node=8) is None


def test_a_choice_without_a_catalog_says_that_it_is_empty() -> None:
    assert "the catalog is empty; give ssh_host" in refuse_choice(Catalog(), device_type="A100", required_devices=8)
