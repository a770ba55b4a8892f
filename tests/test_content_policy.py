"""The policy of each page: what the theme brings runs, by its hash, and nothing else that stands in a page does."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

import content_policy

ROOT = Path(__file__).parents[1]


def page(body: str) -> str:
    return f'<!DOCTYPE html>\n<html lang="en"><head>\n<meta charset="utf-8" />\n{body}</html>\n'


def allowed(held: str) -> dict[str, set[str]]:
    """The directives of a page's policy, each with its sources."""
    (content,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)" />', held)
    return {name: set(sources) for name, *sources in (part.split() for part in content.split(";"))}


def sha256(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def test_a_page_may_load_from_its_own_site_only():
    rules = allowed(content_policy.held(page("<body></body>"), "_static"))
    assert rules["default-src"] == {"'self'"} and rules["script-src"] == {"'self'", "'wasm-unsafe-eval'"}
    everything = set().union(*rules.values())
    assert everything <= {"'self'", "'none'", "data:", "'wasm-unsafe-eval'", "'unsafe-inline'"}
    assert {name for name, sources in rules.items() if "'unsafe-inline'" in sources} == {"style-src"}


def test_the_policy_stands_before_all_that_it_is_for():
    held = content_policy.held(page('<script>a()</script><link rel="stylesheet" href="a.css" /></head>'), "_static")
    assert held.index('charset="utf-8"') < held.index("Content-Security-Policy") < held.index("<script>")
    for bare in (
        "<!doctype html><title>t</title><script>a()</script>",
        "<script>a()</script>",
        "<head><script>a()</script>",
    ):
        held = content_policy.held(bare, "_static")
        assert held.index("Content-Security-Policy") < held.index("<script>")
        assert not bare.startswith("<!") or held.startswith("<!doctype html>")


def test_the_scripts_that_stand_in_a_page_run_by_their_hash():
    one, two = "let a = '1 < 2 && 3';\n  // é", "var b = `</div>`;"
    rules = allowed(
        content_policy.held(page(f"<script>{one}</script><p>x</p><SCRIPT data-x>{two}</SCRIPT>"), "_static")
    )
    assert rules["script-src"] == {"'self'", "'wasm-unsafe-eval'", sha256(one), sha256(two)}


def test_data_and_files_need_no_hash():
    body = '<script type="application/json">{"a": 1}</script><script src="a.js"></script><p>&lt;script&gt;x()</p>'
    assert allowed(content_policy.held(page(body), "_static"))["script-src"] == {"'self'", "'wasm-unsafe-eval'"}


def test_the_handler_of_the_theme_becomes_a_name_and_loads_the_file_that_knows_it():
    button = '<button onclick="window.print()"\n  class="btn" title="Print">x</button>'
    held = content_policy.held(page(button), "../_static")
    assert '<button data-page-action="print"\n  class="btn"' in held and "onclick" not in held
    assert '<script defer src="../_static/page_actions.js"></script>' in held
    assert "page_actions" not in content_policy.held(page("<button>x</button>"), "../_static")


def test_each_name_is_known_to_the_file():
    source = (ROOT / "site" / "assets" / content_policy.ACTIONS_FILE).read_text(encoding="utf-8")
    assert all(re.search(rf"\b{name}: ", source) for name in content_policy.ACTIONS.values())


@pytest.mark.parametrize(
    "element",
    [
        '<button onclick="steal()">x</button>',
        "<img src=x onerror=steal()>",
        '<svg><path d="M0 0" onmouseover="steal()" /></svg>',
        '<g\nonload="steal()"></g>',
        '<a href="javascript:steal()">x</a>',
        '<form action=" JavaScript:steal()"></form>',
    ],
)
def test_other_code_in_an_attribute_is_a_fault_of_the_build(element):
    with pytest.raises(ValueError, match="code in an attribute.*steal"):
        content_policy.held(page(element), "_static")


def test_every_page_of_a_site_gets_its_policy_and_a_fault_names_its_page(tmp_path):
    for name in ("index.html", "chapters/deep/one.html", "_static/part.html", "_vendored/x/theirs.html"):
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        tmp_path.joinpath(name).write_text(page('<button onclick="window.print()">x</button>'), encoding="utf-8")
    tmp_path.joinpath("bad.html").write_text(page('<p onclick="x()"></p>'), encoding="utf-8")
    assert [said.partition(":")[0] for said in content_policy.hold(tmp_path)] == ["bad"]
    assert 'src="_static/page_actions.js"' in tmp_path.joinpath("index.html").read_text(encoding="utf-8")
    assert 'src="../../_static/page_actions.js"' in tmp_path.joinpath("chapters/deep/one.html").read_text(
        encoding="utf-8"
    )
    assert "Security" not in tmp_path.joinpath("_static/part.html").read_text(encoding="utf-8")
