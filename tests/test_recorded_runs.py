"""Recorded runs on a lab's page: read when the book is built, and never part of the notebook."""

import json
from types import SimpleNamespace

import pytest
from sphinx.errors import ExtensionError

import recorded_runs
from enginelab import results
from enginelab.machines import described

NOTEBOOK = json.dumps({"cells": [{"cell_type": "markdown", "id": "a", "source": "# Lab"}], "nbformat": 4})


@pytest.fixture
def app(tmp_path):
    """As much of Sphinx as the extension looks at: a source folder with one recorded run, and an environment."""
    folder = tmp_path / "labs" / "results"
    results.keep("05_vllm_omni", "vLLM Omni 0.30.0", {"s": 1}, {"s": 2}, described("L4"), folder)
    return SimpleNamespace(srcdir=tmp_path, folder=folder)


def read(app, page):
    content = [NOTEBOOK]
    recorded_runs._add_runs(app, page, content)
    return content[0]


def test_a_labs_page_ends_with_its_runs(app):
    *before, last = json.loads(read(app, "labs/05_vllm_omni"))["cells"]
    assert before == json.loads(NOTEBOOK)["cells"]
    assert last["source"].startswith("## Recorded runs\n")
    assert last["source"].splitlines()[-1] == f"| NVIDIA L4 | vLLM Omni 0.30.0 | {day(app)} | 1 / 2 |"


def day(app):
    return results.of_lab("05_vllm_omni", app.folder)[0].day


def test_a_lab_that_nobody_has_recorded_says_so_and_how_to(app):
    last = json.loads(read(app, "labs/01_vllm"))["cells"][-1]["source"]
    assert "No run of it has been recorded yet." in last
    assert 'results.keep("01_vllm", source, predicted, measured, machine)' in last


@pytest.mark.parametrize("page", ["index", "chapters/05_vllm_omni", "labs/README", "05_vllm_omni"])
def test_other_pages_stay_as_they_are(page, app):
    assert read(app, page) == NOTEBOOK


def test_a_bad_file_stops_the_build_with_its_name(app):
    (app.folder / "05_vllm_omni--bad.json").write_text("{}")
    with pytest.raises(ExtensionError, match="labs/results/05_vllm_omni--bad.json is no record of a run"):
        read(app, "labs/05_vllm_omni")


def test_a_new_run_has_the_labs_read_again_and_no_other_page(app):
    env = SimpleNamespace(found_docs={"index", "labs/01_vllm", "labs/05_vllm_omni", "chapters/03_vllm"})

    def outdated():
        return sorted(recorded_runs._changed(app, env, set(), set(), set()))

    assert outdated() == [] and outdated() == []
    results.keep("01_vllm", "vLLM 0.33.0", {"s": 1}, {"s": 2}, described("L4"), app.folder)
    assert outdated() == ["labs/01_vllm", "labs/05_vllm_omni"] and outdated() == []
