"""Fixtures that several test files share."""

import io
import os
import signal
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from hypothesis import settings

import inline_figures

mpl.use("agg")

# How long an example takes says more of the machine than of the code.
settings.register_profile("course", deadline=None)
settings.load_profile("course")

# A run that a shell put into the background has Ctrl-C ignored, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder with the public traces and measured runs, which are not copied into the repository."""
    folder = Path(os.environ.get("ENGINELAB_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the public traces are not here: set ENGINELAB_DATA to their folder")
    return folder


@pytest.fixture(autouse=True)
def closed_figures():
    """No test leaves a figure to the next."""
    yield
    plt.close("all")


@pytest.fixture
def suits_the_book():
    """A check of what each figure promises: it leaves matplotlib as it was, and its colours follow the page's theme."""

    def check(draw):
        before = dict(mpl.rcParams)
        ax = draw()
        assert dict(mpl.rcParams) == before
        with mpl.rc_context({"svg.fonttype": "none"}), io.StringIO() as file:
            ax.figure.savefig(file, format="svg")
            assert inline_figures.foreign_colours(file.getvalue()) == set()
        return ax

    return check
