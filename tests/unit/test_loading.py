"""Loading a template: each of Jinja's traps is an error with its place, and bash comes out as it went in."""

from pathlib import Path

import pytest
from jinja2 import TemplateAssertionError, TemplateSyntaxError

from slurm_bundle.loading import load_template, make_environment
from slurm_bundle.quoting import QuotingError

NAMES = frozenset({"value", "values", "there"})


def load(folder: Path, text: str, name: str = "x.sh") -> str:
    """What a template gives; another line stands before it."""
    (folder / name).write_text(f"# first\n{text}")
    found = load_template(folder, name, NAMES)
    return found.render({"value": "v", "values": ("a", "b"), "there": True}).removeprefix("# first\n")


@pytest.mark.parametrize("hole", ["value", "3", "none", "true", "[]", "'v'", "value ~ value", "(value | sh) ~ 'x'"])
def test_a_hole_without_a_quoting_filter_is_refused_with_its_place_also_where_it_is_not_rendered(
    tmp_path: Path, hole: str
) -> None:
    with pytest.raises(TemplateAssertionError, match="without a quoting filter") as caught:
        load(tmp_path, f"{{% if not there %}}\na={{{{ value | sh }}}} b={{{{ {hole} }}}}\n{{% endif %}}")
    assert (caught.value.name, caught.value.lineno) == ("x.sh", 3)


@pytest.mark.parametrize(
    "text",
    [
        *("a={{ nothing | sh }}", "{% if nothing %}\n{% endif %}", "{% for x in nothing %}\n{% endfor %}"),
        *("a={{ range | sh }}", "{% for x in x %}\n{% endfor %}", "{% for x in values %}\n{% endfor %}{{ x | sh }}"),
    ],
)
def test_a_name_that_no_plan_has_is_refused_with_its_place_also_where_it_is_not_rendered(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(TemplateAssertionError, match=r"no plan has '(nothing|range|x)'") as caught:
        load(tmp_path, f"{{% if not there %}}\n{text}\n{{% endif %}}")
    assert caught.value.name == "x.sh"
    assert caught.value.lineno == 3 + text.count("\n", 0, text.index("{{") if "{{" in text else 0)


@pytest.mark.parametrize("text", ["{# a note of somebody used to Jinja #}", "a={#", "b=${##} # ##}", "b=${##x}"])
def test_what_looks_like_a_comment_or_would_begin_one_by_mistake_is_refused_with_its_place(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(TemplateAssertionError, match=r"a comment is \{## \.\.\. ##\}") as caught:
        load(tmp_path, text)
    assert (caught.value.name, caught.value.lineno) == ("x.sh", 2)


@pytest.mark.parametrize(
    "text",
    [
        *("{% set x = 1 %}", "{% include 'y.sh' %}", "{% autoescape true %}{{ value | sh }}{% endautoescape %}"),
        *("{% macro m() %}{% endmacro %}", "{% if value.name %}\n{% endif %}", "{% if value == 'x' %}\n{% endif %}"),
        *("{% filter sh %}x{% endfilter %}", "{{ value[0] | sh }}", "{% for a, b in values %}\n{% endfor %}"),
    ],
)
def test_what_needs_more_than_a_hole_an_if_or_a_for_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TemplateAssertionError, match=r"is no hole, if or for") as caught:
        load(tmp_path, text)
    assert (caught.value.name, caught.value.lineno) == ("x.sh", 2)


@pytest.mark.parametrize("text", ["printf '{%s}' x", "docker ps --format '{{.Names}}'", "{{ value | upper }}", "{{"])
def test_what_jinja_cannot_read_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        load(tmp_path, text)
    assert (caught.value.name, caught.value.lineno) == ("x.sh", 2)


def test_bash_comes_out_as_it_went_in(tmp_path: Path) -> None:
    bash = r"""a=${#array[@]} b=${x#\#} c=${x##*/} d=${#} e="#}" f=$((${#a} % 3)) g=${x%%} h='<&>"' # {a,b}"""
    assert load(tmp_path, bash) == bash
    assert load(tmp_path, bash + " {## for us ##}{{ value | sh }}", "y.sh") == bash + " 'v'"


def test_a_filter_that_gives_what_is_not_quoted_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(make_environment().filters, "sh", str)
    with pytest.raises(QuotingError, match="without a quoting filter"):
        load(tmp_path, "{{ value | sh }}")


def test_a_template_is_loaded_once(tmp_path: Path) -> None:
    assert load(tmp_path, "a={{ value | sh }}") == "a='v'"
    assert load(tmp_path, "changed") == "a='v'"
