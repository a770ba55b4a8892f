"""What the build says at its end: the weight of the pages, and how long it took."""

from pathlib import Path

import pytest

import build as module

ROOT = Path(__file__).parents[1]


@pytest.fixture
def build(monkeypatch):
    # What the theme brings is of no concern here.
    monkeypatch.setattr(module.icons, "reduce", lambda html: None)
    return module


def write(folder: Path, body: str) -> None:
    folder.joinpath("_static").mkdir()
    folder.joinpath("_static", "page_actions.js").write_text("// small")
    folder.joinpath("index.html").write_text(
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8" /></head>{body}</html>'
    )


def test_a_finished_page_has_its_policy_and_its_weight(build, tmp_path):
    write(tmp_path, '<button onclick="window.print()">print</button>')
    (weight,), complaints = build.finish(tmp_path)
    assert complaints == [] and set(weight.parts) == {"index.html", "_static/page_actions.js"}
    assert "Content-Security-Policy" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    "body, said", [("<p onclick='x()'></p>", "index: code in an attribute"), ("<img src='no.png'>", "loads no.png")]
)
def test_what_no_page_may_have_is_a_complaint(build, tmp_path, body, said):
    write(tmp_path, body)
    _, (complaint,) = build.finish(tmp_path)
    assert said in complaint


def test_the_time_is_told_beside_its_budget(build):
    assert build.took(100.4) == "The book is built, in 100 s (budget 240)."
    assert "OVER BUDGET" in build.took(240.1)


@pytest.mark.parametrize("bytes_more, status", [(-20_000, 0), (1, 1)])
def test_a_heavy_page_is_a_failure(build, tmp_path, monkeypatch, capsys, bytes_more, status):
    """The site stands, so that one can look at it, but the exit status says that something is wrong."""
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")

    def pages(root, html, **settings):
        html.mkdir(parents=True, exist_ok=True)
        write(html, f'<img src="a.png">{"<p>text</p>" * 9}')
        html.joinpath("a.png").write_bytes(bytes(build.page_weight.BUDGET + bytes_more))
        html.parent.joinpath("execution.json").write_text("{}")
        return 0

    monkeypatch.setattr(build, "build_sphinx", pages)
    monkeypatch.setattr(build, "prepare", lambda build_folder: build_folder.mkdir(exist_ok=True))
    monkeypatch.setattr(build.vendored, "place", lambda folder: None)
    assert build.main(tmp_path) == status
    said = capsys.readouterr().out
    assert ("too heavy" in said) == bool(status) and "a.png" in said
    assert (tmp_path / "_build/html/index.html").is_file()


def test_a_build_without_its_browser_files_ends_in_their_sentence(build, tmp_path, monkeypatch, capsys):
    def away(folder):
        raise build.vendored.NotVendored("Cannot fetch it.")

    monkeypatch.setattr(build, "prepare", lambda build_folder: build_folder.mkdir(exist_ok=True))
    monkeypatch.setattr(build.vendored, "place", away)
    assert build.main(tmp_path) == 1
    assert capsys.readouterr().out.endswith("The book is NOT built: Cannot fetch it.\n")
