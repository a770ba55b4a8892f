"""Publishing: a fork's buttons open the fork, and nothing is said that is not known."""

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import yaml
from docutils import nodes
from docutils.utils import new_document
from PIL import Image

import publishing

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path):
    """An empty checkout, and a function that runs git in it."""

    def git(*words):
        identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch=trunk")
    return tmp_path, git


# --- which repository ---------------------------------------------------------------------------------------------

ACTIONS = {"GITHUB_REPOSITORY": "some-one/a.fork", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REF_NAME": "main"}


def test_github_actions_say_which_repository_it_is(tmp_path):
    assert publishing.repository(ACTIONS, tmp_path) == publishing.Repository("some-one", "a.fork", "main")
    request = ACTIONS | {"GITHUB_REF_NAME": "12/merge", "GITHUB_BASE_REF": "next"}
    assert publishing.repository(request, tmp_path).branch == "next"


@pytest.mark.parametrize("changed", [{"GITHUB_SERVER_URL": "https://github.example.com"}, {"GITHUB_REPOSITORY": "odd"}])
def test_where_colab_and_binder_cannot_look_there_is_no_repository(tmp_path, changed):
    assert publishing.repository(ACTIONS | changed, tmp_path) is None


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/some-one/a.fork.git", "https://github.com/some-one/a.fork",
        "git@github.com:some-one/a.fork.git", "ssh://git@github.com/some-one/a.fork.git",
        "https://token@github.com/some-one/a.fork/",
    ],
)  # fmt: skip
def test_a_checkout_says_by_its_remote_which_repository_it_is(checkout, remote):
    root, git = checkout
    git("remote", "add", "origin", remote)
    assert publishing.repository({}, root) == publishing.Repository("some-one", "a.fork", "main")


@pytest.mark.parametrize(
    "remote", ["/somewhere/course", "https://gitlab.com/some-one/course", "https://github.com/some-one"]
)
def test_a_remote_elsewhere_is_no_repository(checkout, remote):
    root, git = checkout
    git("remote", "add", "origin", remote)
    assert publishing.repository({}, root) is None


def test_the_branch_is_the_one_that_the_remote_shows_first(checkout):
    root, git = checkout
    git("remote", "add", "origin", "https://github.com/some-one/course")
    git("commit", "--allow-empty", "-m", "first")
    git("update-ref", "refs/remotes/origin/trunk", "HEAD")
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    git("checkout", "-b", "a-try")
    assert publishing.repository({}, root).branch == "trunk"


def test_no_git_and_no_checkout_is_no_repository(tmp_path, monkeypatch):
    assert publishing.repository({}, tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert publishing.repository({}, ROOT) is None


def test_the_time_is_that_of_the_commit(checkout, monkeypatch):
    root, git = checkout
    assert publishing.commit_time(root) == ""
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-12-01T12:00:00+02:00")
    git("commit", "--allow-empty", "-m", "first")
    assert publishing.commit_time(root) == str(int(datetime(2026, 12, 1, 10, tzinfo=UTC).timestamp()))


# --- buttons ------------------------------------------------------------------------------------------------------


def link(source):
    group = publishing.opener(publishing.Repository("some-one", "a.fork", "next/try"), source)
    return group and group["buttons"][0]["url"]


def test_a_lab_opens_on_colab_and_a_chapter_on_binder():
    colab = link("labs/01_vllm.ipynb")
    assert colab == "https://colab.research.google.com/github/some-one/a.fork/blob/next%2Ftry/labs/01_vllm.ipynb"
    binder = urlsplit(link("chapters/07_planner.md"))
    assert f"{binder.scheme}://{binder.netloc}{binder.path}" == "https://mybinder.org/v2/gh/some-one/a.fork/next%2Ftry"
    assert unquote(binder.query) == "urlpath=lab/tree/chapters/07_planner.ipynb"


@pytest.mark.parametrize("source", ["index.md", "labs/README.md", "chapters/drawing.svg"])
def test_other_pages_open_nowhere(source):
    assert link(source) is None


def test_binder_gets_the_pins_a_python_that_they_are_for_and_notebooks(tmp_path):
    """repo2docker reads nothing at the root where there is .binder, and takes its newest Python unless one is named."""
    binder = ROOT / ".binder"
    named = re.fullmatch(r"python-(\d+\.\d+)\n", (binder / "runtime.txt").read_text())
    assert named and f"Resolved on Python {named[1]}" in (ROOT / "requirements.txt").read_text()
    assert (binder / "requirements.txt").read_text() == "-r ../requirements.txt\n"
    (tmp_path / "chapters").mkdir()
    shutil.copy(ROOT / "chapters" / "07_planner.md", tmp_path / "chapters")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([binder / "postBuild"], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True, timeout=60)
    notebook = nbformat.read(tmp_path / "chapters" / "07_planner.ipynb", as_version=4)
    assert notebook.metadata["kernelspec"]["name"] == "python3" and len(notebook.cells) > 10
    assert any(cell.cell_type == "code" for cell in notebook.cells)


# --- what a page says about itself --------------------------------------------------------------------------------


def test_a_page_says_what_is_known_and_escapes_it():
    alone = publishing.tags('A "title"', "What <is> it?")
    assert 'content="A &quot;title&quot;"' in alone and 'name="description" content="What &lt;is&gt; it?"' in alone
    assert "http" not in alone and "image" not in alone
    known = publishing.tags("T", "", "https://a.example/b/c.html", "https://a.example/b/")
    assert 'property="og:url" content="https://a.example/b/c.html"' in known
    assert 'property="og:image" content="https://a.example/b/_static/card.png"' in known and "description" not in known


def test_a_page_is_summed_up_by_its_first_paragraph():
    page = new_document("page")
    page += nodes.section("", nodes.title("", "T"), nodes.note("", nodes.paragraph("", "Aside.")))
    page[0] += nodes.paragraph("", "", nodes.emphasis("", "How many\nworkers?"))
    page[0] += nodes.paragraph("", "More.")
    assert publishing.summary(page) == "How many workers?"
    page[0][2][0].children[0] = nodes.Text("word " * 100)
    short = publishing.summary(page, longest=50)
    assert len(short) <= 50 and short.endswith("word…")
    assert publishing.summary(new_document("empty")) == ""


def test_the_card_has_the_size_that_sites_show(tmp_path):
    publishing.draw_card(tmp_path / "card.png", "Inference engines")
    with Image.open(tmp_path / "card.png") as card:
        assert card.size == publishing.CARD_SIZE and len(card.convert("RGB").getcolors(1 << 20)) > 3
    assert (tmp_path / "card.png").stat().st_size < 100_000


# --- the workflow -------------------------------------------------------------------------------------------------


def test_the_workflow_names_no_repository_and_pins_what_it_runs():
    text = (ROOT / ".github/workflows/course.yml").read_text()
    assert not re.search(r"github\.io|github\.com/", text)
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in actions)
