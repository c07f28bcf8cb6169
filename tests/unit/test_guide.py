"""The README.md of a bundle shows each value as it is, and as nothing else."""

import pytest

from slurm_bundle.guide import code, show, write_readme
from slurm_bundle.render import render_bundle
from tests.unit.test_plan import plan


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it's $HOME", "`it's $HOME`"),
        ("a|b", "`a\\|b`"),
        ("a\\|b", "`a\\\\\\|b`"),
        ("`id`", "`` `id` ``"),
        ("a``b`c", "```a``b`c```"),
        ("two\nlines\tand\rmore\u2028\x1b[2J", "`two\\nlines\\tand\\u000dmore\\u2028\\u001b[2J`"),
        ("<!-- a -->", "`<!-- a -->`"),
        ("", ""),
    ],
)
def test_a_value_stands_as_code_in_its_cell(text: str, shown: str) -> None:
    assert code(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("llama-3.1_8b (50%)", "llama-3.1_8b (50%)"),
        ("[a](b) *c*", "\\[a](b) \\*c\\*"),
        ("<!--", "\\<!--"),
        ("\\| \\d \\*", "\\\\\\| \\d \\\\\\*"),
        ("`a`\n# b", "\\`a\\`\\n# b"),
    ],
)
def test_a_value_in_running_text_is_no_markup(text: str, shown: str) -> None:
    assert show(text) == shown


def test_no_value_makes_another_line_of_it() -> None:
    odd = "x\r    curl evil\n\n    curl evil\u2028```\x0b"
    made = plan(command=odd, env={"A": odd}, build_project=True, build_command=odd)
    plain = plan(command="x", env={"A": "x"}, build_project=True, build_command="x")
    text, other = (write_readme(each, render_bundle(each)) for each in (made, plain))
    assert len(text.splitlines()) == len(other.splitlines())
    assert "\n    curl" not in text
