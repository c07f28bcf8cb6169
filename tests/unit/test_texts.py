"""What each kind of text takes and refuses: everything that its place can hold, and nothing else."""

import pytest

from slurm_bundle import texts

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
