"""Rules for all tests: markers name real requirements, and with CI=true nothing is skipped."""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REQUIREMENTS = Path(__file__).parent / "requirements.toml"

# pytest --hypothesis-profile=thorough: of those properties that do not say themselves how often they are tried.
settings.register_profile("thorough", max_examples=10_000, suppress_health_check=[HealthCheck.too_slow])


def read_requirements() -> dict[str, str]:
    """The promises of the product: id -> a short text, in the order of the table."""
    rows: dict[str, str] = tomllib.loads(REQUIREMENTS.read_text())["requirements"]
    return rows


def requirements_of(item: pytest.Item) -> list[str]:
    return [str(name) for marker in item.iter_markers("req") for name in marker.args]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements", action="store_true", help="print the table of requirements with their tests")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    known = read_requirements()
    unknown = {name for item in items for name in requirements_of(item)} - set(known)
    if unknown:
        raise pytest.UsageError(f"markers name requirements that are not in {REQUIREMENTS.name}: {sorted(unknown)}")
    if config.getoption("--requirements"):
        print_table(known, items)
        items.clear()


def print_table(known: dict[str, str], items: list[pytest.Item]) -> None:
    """A line a requirement, and below it the tests; `cluster` marks those that run on the real one."""
    for name, promise in known.items():
        print(f"{name:4} {promise}")
        tests = sorted({f"{item.nodeid.split('[')[0]}" for item in items if name in requirements_of(item)})
        on_cluster = {item.nodeid.split("[")[0] for item in items if item.get_closest_marker("cluster")}
        for test in tests:
            print(f"     {'cluster ' if test in on_cluster else '        '}{test}")
        if not tests:
            print("     -")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and os.environ.get("CI") == "true":
        names = ", ".join(report.nodeid for report in skipped)
        print(f"\nskipped, which with CI=true is a failure: {names}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
