from pathlib import Path

import pytest

from slurm_bundle.problems import BundleConflict, CatalogError, GenError, Problem, SpecError, place_of


def test_a_problem_reads_as_place_field_value_and_way_out() -> None:
    problem = Problem(place_of("job_spec.json", "node_count", {"node_count": 12}), "0 is not allowed; give 1 or more")
    assert str(problem) == "job_spec.json:12: node_count: 0 is not allowed; give 1 or more"


def test_a_field_without_a_line_is_named_without_one() -> None:
    assert place_of("job_spec.json", "ssh_host") == "job_spec.json: ssh_host"


@pytest.mark.parametrize("field", ["slurm_params.nodes", "slurm_params[3]", "slurm_params.a[1].b"])
def test_a_part_without_a_line_has_the_line_of_its_parent(field: str) -> None:
    assert place_of("s.json", field, {"slurm_params": 7}) == f"s.json:7: {field}"


def test_a_place_shows_control_characters_as_escapes() -> None:
    assert place_of("s.json", "a\x1b[31m\n") == "s.json: a\\u001b[31m\\u000a"


def test_an_error_shows_every_problem_on_a_line_of_its_own() -> None:
    error = SpecError([Problem("a", "one"), Problem("b", "two")])
    assert str(error) == "a: one\nb: two"
    assert len(error.problems) == 2


@pytest.mark.parametrize("error", [SpecError([]), CatalogError([]), BundleConflict([Path("run_all.sh")])])
def test_every_error_of_the_user_ends_with_exit_code_2(error: GenError) -> None:
    assert error.exit_code == 2


def test_a_conflict_names_the_files_and_the_way_out() -> None:
    error = BundleConflict([Path("run_all.sh"), Path("config.sh")])
    assert "run_all.sh, config.sh" in str(error)
    assert "another output folder" in str(error)
