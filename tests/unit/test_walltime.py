"""Forms of time limits, in and out. What Slurm itself makes of the table is in tests/cluster/test_headers.py."""

import pytest

from slurm_bundle.walltime import explain_walltime, format_walltime, parse_duration, parse_walltime
from tests.forms import WALLTIMES


@pytest.mark.parametrize(("text", "normal"), WALLTIMES)
def test_a_walltime_means_what_it_means_to_slurm(text: str, normal: str) -> None:
    # TIM-01, TIM-02
    assert format_walltime(parse_walltime(text)) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-5", "-2", "+30", "0x10", "1e3", "1.5", "1.5h", "12h1d", "2h30", "h", "d", "soon", "UNLIMITED1"),
        *("1:2:3:4", "1:", ":30", "1:2:", "1-", "1-:", "1-2:", "-1:00", "1-2-3", "1:-2", " 1:00:00", "1:00:00\n"),
        *("\u0663", "\uff11\uff12", "9" * 5000, "NOT_SET", "INVALID", "Partition_Limit"),
    ],
)
def test_a_text_that_is_no_walltime_is_refused_with_the_forms(text: str) -> None:
    # TIM-02
    with pytest.raises(ValueError, match=r"is no time limit; give H:M:S"):
        parse_walltime(text)


@pytest.mark.parametrize("text", ["24855-03:13:09", "9999999d", "999999999", "999999:00:00", "999999999-0"])
def test_a_walltime_beyond_slurms_32_bits_is_refused(text: str) -> None:
    # Slurm 22.05 makes 2981116-20:21:00 of 999999999, and 19:44:00 of 2982617-00.
    with pytest.raises(ValueError, match=r"is longer than Slurm can count \(24855 days\); give less, or UNLIMITED"):
        parse_walltime(text)


@pytest.mark.parametrize(
    ("text", "way_out"), [("1 day", "1d"), ("2 hours", "2h"), ("90min", "90m"), ("5 Minutes", "5m")]
)
def test_a_walltime_in_words_is_refused_with_the_form_to_write(text: str, way_out: str) -> None:
    with pytest.raises(ValueError, match=f"write {way_out}$"):
        parse_walltime(text)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("24:00", "24:00 is 24 minutes to Slurm; for 24 hours write 24:00:00"),
        ("01:00", "01:00 is 1 minute to Slurm; for 1 hour write 01:00:00"),
        ("0:30", "0:30 is 30 seconds to Slurm, rounded up to 1 minute; for 30 minutes write 0:30:00"),
        (
            "1:30",
            "1:30 is 1 minute 30 seconds to Slurm, rounded up to 2 minutes; for 1 hour 30 minutes write 1:30:00",
        ),
        ("90s", "90s is 90 seconds to Slurm, rounded up to 2 minutes"),
        ("0:0:1", "0:0:1 is 1 second to Slurm, rounded up to 1 minute"),
        ("4", "4 is 4 minutes (00:04:00) to Slurm; for 4 hours write 4h"),
        ("120", "120 is 120 minutes (02:00:00) to Slurm"),
        ("3600", "3600 is 3600 minutes (2-12:00:00) to Slurm; for 3600 seconds write 3600s"),
        ("0", "0 is no limit to Slurm; to say so plainly write UNLIMITED"),
        ("-1", "-1 is no limit to Slurm; to say so plainly write UNLIMITED"),
        ("INFINITE", "INFINITE is no limit to Slurm; to say so plainly write UNLIMITED"),
        *((plain, None) for plain in ("02:00:00", "1-00:00:00", "2-12", "2h", "120s", "23:59:59", "unlimited")),
    ],
)
def test_forms_that_people_misread_get_a_remark(text: str, remark: str | None) -> None:
    assert explain_walltime(text) == remark


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h", 3600), ("30m", 1800), ("3600s", 3600), ("1h30m", 5400), ("01:00:00", 3600)]
)
def test_a_duration_is_read_as_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("3600", "for seconds write 3600s"),
        ("10:00", "give 1h"),
        ("", "give 1h"),
        ("UNLIMITED", "give 1h"),
        ("0s", "one second"),
    ],
)
def test_an_ambiguous_duration_is_refused_with_a_way_out(text: str, way_out: str) -> None:
    with pytest.raises(ValueError, match=way_out):
        parse_duration(text)
