"""Names of jobs, in and out. What Slurm itself makes of the table is in tests/cluster/test_headers.py."""

import pytest

from slurm_bundle.quoting import sbatch
from slurm_bundle.texts import JOB_NAME_LENGTH, check_job_name, make_job_name
from tests.forms import JOB_NAMES


@pytest.mark.parametrize("name", JOB_NAMES)
def test_a_name_that_slurm_carries_is_taken_and_written_whole(name: str) -> None:
    # HDR-02, HDR-05
    assert check_job_name(name) == name
    assert make_job_name(name) == name
    assert sbatch(f"--job-name={name}").replace('"', "") == f"--job-name={name}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("team/exp1", "would become a folder in log names with %x; write 'team_exp1'"),
        ("a/b/c", "write 'a_b_c'"),
        ("/", "write '_'"),
        ("-x", "begins with '-'"),
        ("--wrap=id", "begins with '-'"),
        (" a", "write 'a'"),
        ("a ", "write 'a'"),
        (".", "no name of a folder"),
        ("..", "no name of a folder"),
        ("x" * 201, "has 201 characters; give 200 at most"),
        ("x" * 5000, "has 5000 characters; give 200 at most"),
        *((f"a{char}b", "must not stand in an #SBATCH line") for char in "\"'`$;#<>{}!?^~\\é\u00a0\U0001f600"),
        *((f"a{char}b", "control character") for char in "\n\r\t\x1b\x7f\u2028"),
    ],
)
def test_a_name_that_would_come_out_as_another_is_refused(name: str, said: str) -> None:
    # HDR-03, HDR-07, HDR-13
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the text is looked at below
        check_job_name(name)
    assert said in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("acct.llama 3.1/8b", "acct.llama 3.1_8b"),
        ("acct.modèle \N{GRINNING FACE}", "acct.mod_le _"),
        ('acct."$(id)"', "acct.__(id)_"),
        ("a" * 300, "a" * JOB_NAME_LENGTH),
        ("a" * 199 + " b", "a" * 199),
    ],
)
def test_a_name_that_is_derived_is_made_one_that_slurm_carries(text: str, name: str) -> None:
    assert make_job_name(text) == name
    assert check_job_name(name) == name
