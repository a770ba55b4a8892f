"""The pages' policy as a browser holds it: the theme works under it; code that somebody puts into a page does not."""

import pytest

PAGE = "chapters/02_continuous_batching.html"

pytestmark = pytest.mark.usefixtures("built_site")


def test_a_script_put_into_a_page_does_not_run(visit):
    seen = visit(PAGE)
    seen.page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'taken'";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<img src='data:,' onerror='document.title = `taken`' alt=''>");
      document.body.insertAdjacentHTML("beforeend", "<a id='tempting' href='javascript:document.title=`taken`'>x</a>");
      document.getElementById("tempting").click();
    }""")
    seen.page.wait_for_function("() => true")
    assert seen.page.title() != "taken"
    assert len([said for said in seen.said if "Content Security Policy" in said]) >= 3


@pytest.mark.parametrize(
    "ask",
    ["fetch('https://192.0.2.1/')", "new Worker(URL.createObjectURL(new Blob(['1'], {type: 'text/javascript'})))"],
)
def test_a_page_asks_nobody_else_and_starts_no_worker_of_unknown_code(visit, ask):
    seen = visit(PAGE)
    seen.page.evaluate(f"async () => {{ try {{ await {ask} }} catch {{}} }}")
    seen.page.wait_for_function("() => true")
    assert seen.outside == [] and any("Content Security Policy" in said for said in seen.said)


def test_compiled_code_is_let_through(visit):
    module = "WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => 'compiled')"
    assert visit(PAGE).page.evaluate(module) == "compiled"


def test_the_themes_own_scripts_run(visit):
    seen = visit(PAGE, theme="dark")
    assert seen.page.get_attribute("html", "data-theme") == "dark"
    assert seen.page.evaluate("DOCUMENTATION_OPTIONS.pagename") == PAGE.removesuffix(".html")
    seen.page.locator(".theme-switch-button:visible").first.click()
    assert seen.page.get_attribute("html", "data-mode") != "auto"
    assert seen.said == []


def test_the_button_to_print_prints(visit):
    seen = visit(PAGE)
    seen.page.evaluate("() => { window.print = () => { document.title = 'printed' } }")
    seen.page.locator(".dropdown-download-buttons > button").click()
    seen.page.locator(".btn-download-pdf-button").click()
    assert seen.page.title() == "printed" and seen.said == []


def test_icons_are_drawn(visit):
    seen = visit(PAGE)
    seen.page.wait_for_function("document.fonts.status === 'loaded'")
    assert seen.page.evaluate("document.fonts.check('900 16px \"Font Awesome 6 Free\"', '\\uf019')")
    shown = seen.page.locator(".dropdown-download-buttons i").first
    assert "Font Awesome" in shown.evaluate("(icon) => getComputedStyle(icon).fontFamily")
    assert shown.evaluate("(icon) => getComputedStyle(icon, '::before').content") == '"\uf019"'
