"""The browser tests' own tools: what they promise to notice, they notice."""

import pytest

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>t</title></head><body>
<script>console.error("said so"); document.title = "ran";</script>
<script src="missing.js"></script><img src="http://192.0.2.1/far.png" alt=""></body></html>"""


@pytest.fixture
def far(tmp_path, serve):
    tmp_path.joinpath("page.html").write_text(PAGE, encoding="utf-8")
    tmp_path.joinpath("small.wasm").write_bytes(b"\0asm\1\0\0\0")
    return serve(tmp_path)


def test_a_request_to_another_address_is_stopped_and_noted(visit, far):
    seen = visit("page.html", base=far)
    assert seen.outside == ["http://192.0.2.1/far.png"]
    assert seen.loaded[0] == "page.html"


def test_errors_and_failures_are_noted(visit, far):
    said = " | ".join(visit("page.html", base=far).said)
    assert "said so" in said and "404" in said


def test_a_reader_may_have_no_scripts(visit, far):
    assert visit("page.html", base=far).page.title() == "ran"
    assert visit("page.html", base=far, scripts=False).page.title() == "t"


def test_compiled_code_has_the_type_that_browsers_insist_on(visit, far):
    seen = visit("page.html", base=far)
    compiled = "WebAssembly.compileStreaming(fetch('small.wasm')).then(() => 'compiled')"
    assert seen.page.evaluate(compiled) == "compiled"
