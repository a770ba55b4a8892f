"""Fixtures that several test files share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder with the public traces and measured runs, which are not copied into the repository."""
    folder = Path(os.environ.get("ENGINELAB_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the public traces are not here: set ENGINELAB_DATA to their folder")
    return folder
