"""A bundle between stand-ins, for each test that asks for one."""

from pathlib import Path

import pytest

from tests.bundle.played import Played


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path)
