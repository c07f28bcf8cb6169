"""Quoting is proven: what bash makes of a quoted value is the value."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_bundle.quoting import (
    QuotingError,
    assignment,
    comment,
    quote_quietly,
    quote_word,
    sbatch,
    sh_home,
    sh_list_home,
)
from slurm_bundle.settings import Setting

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200)
NASTY = [
    *("", "-n", "a b", "it's", '"', "$HOME", "`id`", "$(id)", "!x", "\\", "\\n", "a'\\''b", "x" * 4096),
    *("a\nb", "\t", "\r", "\x7f", "é", "\u202e", "\N{GRINNING FACE}", "~", "~/x", "%", "#", "*"),
]


def bash(script: str) -> bytes:
    done = subprocess.run(["bash", "-u"], input=script.encode(), capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout


@given(st.lists(TEXTS, min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_text_comes_back_from_bash_as_it_was(texts: list[str]) -> None:
    for quote in (quote_word, quote_quietly):
        words = " ".join(quote(text) for text in texts)
        assert bash(f"printf '%s\\0' {words}\n") == b"".join(text.encode() + b"\0" for text in texts)


def test_the_nasty_ones_come_back_in_an_array_of_config() -> None:
    setting = Setting("VALUES", tuple(NASTY), "meaning", "origin")
    script = f"readonly {assignment(setting)}\nprintf '%s\\0' \"${{VALUES[@]}}\"\n"
    assert bash(script) == b"".join(text.encode() + b"\0" for text in NASTY)
    assert "\n" not in assignment(setting)


@given(st.lists(TEXTS, max_size=8), TEXTS)
@settings(max_examples=60, deadline=None)
def test_any_array_and_any_word_of_config_come_back_each_from_its_own_line(words: list[str], text: str) -> None:
    lines = [assignment(Setting("VALUES", tuple(words), "", "")), assignment(Setting("VALUE", text, "", ""))]
    assert [line for line in lines if "\n" in line] == []
    script = "".join(f"readonly {line}\n" for line in lines)
    # An empty array is unset to bash 3.2 and 4.3 under -u, hence the form with the plus.
    show = 'printf \'%s\\0\' "${#VALUES[@]}" ${VALUES[@]+"${VALUES[@]}"} "$VALUE"\n'
    assert bash(script + show).decode().split("\0")[:-1] == [str(len(words)), *words, text]


@given(st.text("~/:,a \n'$\u202e", max_size=30), st.text("~/:,a '$", max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_path_and_a_mount_expand_nothing_but_a_tilde_in_front(path: str, mount: str) -> None:
    def at_home(part: str) -> str:
        return f"/h{part[1:]}" if part == "~" or part.startswith("~/") else part

    script = f"HOME=/h\nprintf '%s\\0' {sh_home(path)} {sh_list_home((mount,))}\n"
    expected = [at_home(path), ":".join(map(at_home, mount.split(":")))]
    assert bash(script).decode().split("\0")[:-1] == expected


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_a_directive_is_refused_or_holds_the_value_whole(text: str) -> None:
    try:
        line = sbatch(f"--comment={text}")
    except QuotingError:
        return
    # What Slurm makes of the line: it takes the quotes off, and reads nothing else in it.
    assert not set("\n\r\"'#\\$`;") & set(text)
    assert line.replace('"', "") == f"--comment={text}"
    assert text.isascii()


def test_a_word_with_nul_is_refused_by_all() -> None:
    for quote in (quote_word, quote_quietly, sh_home):
        with pytest.raises(QuotingError, match="NUL"):
            quote("a\0b")


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_comment_stays_on_its_line(text: str) -> None:
    assert len(comment(text).splitlines()) <= 1


def test_only_a_leading_tilde_is_the_home_folder() -> None:
    paths = ("~", "~/a b", "/x/~", "~user/x")
    words = " ".join(sh_home(path) for path in paths)
    assert bash(f"HOME=/h\nprintf '%s\\0' {words}\n") == b"/h\0/h/a b\0/x/~\0~user/x\0"
    mounts = sh_list_home(("~/d:/d", "/a:/b", "~/x:~/x", "~:/home/me"))
    assert bash(f"HOME=/h\nprintf '%s' {mounts}\n") == b"/h/d:/d,/a:/b,/h/x:/h/x,/h:/home/me"


@pytest.mark.parametrize("odd", ["\n", '"', "$", "`", ";", "#", "\\", "'", "\0", "\t", "é"])
def test_what_a_directive_cannot_hold_is_refused(odd: str) -> None:
    for option in (f"--x=a{odd}b", f"--x{odd}", odd):
        with pytest.raises(QuotingError, match="cannot stand in a #SBATCH line"):
            sbatch(option)


def test_a_directive_with_a_blank_is_quoted_for_slurm() -> None:
    assert sbatch("--job-name=Big simulation") == '--job-name="Big simulation"'
    assert sbatch("--time=1-00:00:00") == "--time=1-00:00:00"
