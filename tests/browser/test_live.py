"""Live figures in a real browser: they start at a touch, answer, complain in words, and leave the page alive.

The page here is made of the extension's own parts, and served with the course's policy on every file, the worker's too.
"""

import json
import shutil
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import inline_figures
import live_figures
import vendored
from enginelab import explorations

ROOT = Path(__file__).parents[2]
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self'; object-src 'none'; "
    "base-uri 'self'; form-action 'self'"
)
FIRST = 180_000  # milliseconds: no measurement, only an end to waiting on a busy machine
HEAD = """<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Live</title>
<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,"><style>{palette}</style><link rel="stylesheet" href="_live/live.css">
<script type="module" src="_live/live_figures.js"></script></head><body class="bd-article"><main><h1>Live</h1>
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with all that live figures load, and two pages: slots twice, and each.html with every figure."""
    folder = tmp_path_factory.mktemp("live")
    try:
        vendored.place(folder / "_vendored")
        live_figures.place(folder / "_live", ROOT)
    except vendored.NotVendored as error:
        pytest.skip(f"no live figure was tried: {error}")

    def page(*figures):
        parts = [HEAD.format(policy=POLICY, palette=inline_figures.stylesheet())]
        for key, name, settings in figures:
            exploration = explorations.find(name)
            picture = exploration(settings)
            drawn = inline_figures.inline(live_figures.still(picture), picture.words, f"live-{key}-")
            held = live_figures.page_html(key, name, exploration, settings, picture, drawn)
            parts.append(held.replace('"MEGABYTES"', "14"))
        return "".join(parts) + "</main></body></html>"

    (folder / "index.html").write_text(page(("slots", "slots", {}), ("slots-2", "slots", {"slots": "2"})))
    (folder / "each.html").write_text(page(*((name, name, {}) for name in explorations.NAMES)))
    return folder


class Guarded(SimpleHTTPRequestHandler):
    """A static host that sends the policy with every file."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".js": "text/javascript",
                                                               ".wasm": "application/wasm"}  # fmt: skip

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *words):
        pass


def served(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Guarded(*words, directory=str(folder)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def address(site):
    yield from served(site)


@pytest.fixture
def open_page(visit, address):
    """A function that opens a page of `site`; in the end nothing may have gone wrong or out on any of them."""
    visits = []

    def start(path="index.html", **more):
        visited = visit(path, base=more.pop("base", address), **more)
        visits.append(visited)
        visited.page.set_default_timeout(30_000)
        return visited

    yield start
    for visited in visits:
        assert visited.outside == []
        assert visited.said == []


def figure(visited, key="slots"):
    return visited.page.locator(f"#live-{key}")


def words(figure):
    return figure.locator(".live-words")


def answered(figure):
    """Wait for an answer, without guessing."""
    figure.locator(".live-guess button", has_text="Show without guessing").click(timeout=FIRST)
    figure.locator(".live-board svg").first.wait_for()


def expected(**settings):
    return explorations.find("slots")(settings).words


def eventually(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_python_starts_at_a_touch_and_not_when_a_keyboard_passes_through(open_page):
    visited = open_page()
    for _ in range(14):
        visited.page.keyboard.press("Tab")
    assert visited.page.evaluate("document.activeElement.closest('.live-figure').id") == "live-slots-2"
    assert not [path for path in visited.loaded if "_vendored" in path or "worker" in path]
    assert figure(visited).locator("svg.computed-figure").is_visible()

    slider = figure(visited).get_by_label("Slots, slider")
    slider.focus()
    visited.page.keyboard.press("ArrowRight")
    status = figure(visited).locator(".live-status")
    eventually(lambda: "Python is starting in your browser" in status.inner_text(), "no word of the start")
    answered(figure(visited))
    assert words(figure(visited)).inner_text() == expected(slots="5")
    assert not figure(visited).locator("svg.computed-figure").is_visible()
    assert sum(path == "_live/worker.js" for path in visited.loaded) == 1

    # The other figure uses the same Python.
    figure(visited, "slots-2").get_by_label("Output lengths").fill("5, 5")
    answered(figure(visited, "slots-2"))
    assert words(figure(visited, "slots-2")).inner_text() == expected(slots="2", lengths="5,5")
    assert sum(path == "_live/worker.js" for path in visited.loaded) == 1


def test_the_reader_predicts_before_the_answer_shows(open_page):
    visited = open_page()
    slots = figure(visited)
    before = words(slots).inner_text()
    slots.get_by_label("Output lengths").fill("9, 1, 1")
    guess = slots.get_by_label("Predict first")
    guess.wait_for(timeout=FIRST)
    assert words(slots).inner_text() == before
    assert "still the one before" in slots.locator(".live-status").inner_text()
    guess.fill("many")
    guess.press("Enter")
    assert "Type a number" in slots.locator(".live-guess .live-complaint").inner_text()
    guess.fill("11")
    guess.press("Enter")
    slots.locator(".live-board svg").first.wait_for()
    assert words(slots).inner_text() == "You said 11; it is 9. " + expected(lengths="9,1,1")
    assert visited.page.evaluate("document.activeElement.closest('.live-controls') !== null")

    slots.get_by_label("Output lengths").fill("7, 1, 1")
    guess.fill("7")
    guess.press("Enter")
    assert words(slots).inner_text().startswith("You said 7, and so it is. ")


def test_settings_live_in_the_address_and_come_back_from_it(open_page):
    visited = open_page("index.html?other=a%2Cb&slots.slots=2&slots.lengths=4,4#live-slots")
    slots = figure(visited)
    slots.locator(".live-board svg").first.wait_for(timeout=FIRST)
    assert words(slots).inner_text() == expected(slots="2", lengths="4,4")
    assert slots.get_by_label("Slots", exact=True).input_value() == "2"
    assert not slots.locator(".live-guess").is_visible()

    slots.get_by_label("Arrivals").fill("0, 3")
    answered(slots)
    shown = visited.page.url.removeprefix(visited.base)
    assert shown == "index.html?other=a%2Cb&slots.lengths=4,4&slots.slots=2&slots.arrivals=0,3#live-slots"
    slots.get_by_role("button", name="Reset").click()
    assert visited.page.url.removeprefix(visited.base) == "index.html?other=a%2Cb#live-slots"
    assert words(slots).inner_text() == expected()
    assert slots.locator("svg.computed-figure").is_visible()
    assert slots.get_by_label("Output lengths").input_value() == "2, 8, 3, 5, 3, 4"


def test_a_link_to_the_figure_as_set_is_copied(open_page):
    visited = open_page(permissions=["clipboard-read", "clipboard-write"])
    slots = figure(visited)
    slots.get_by_label("Slots", exact=True).fill("3")
    answered(slots)
    slots.get_by_role("button", name="Copy link").click()
    eventually(lambda: "is copied" in slots.locator(".live-status").inner_text(), "no word about the copy")
    link = visited.page.evaluate("navigator.clipboard.readText()")
    assert link == f"{visited.base}index.html?slots.slots=3#live-slots"


@pytest.mark.parametrize(
    "label, typed, said",
    [
        ("Slots", "lots", "“lots” is not a number"),
        ("Slots", "1000000", "choose a number between 1 and"),
        ("Slots", "", "is not a number"),
        ("Output lengths", "1 " * 400, "at most"),
        ("Arrivals", "1", "6 requests need 6 arrivals"),
        ("Slots", "<img src=x onerror=alert(1)>", "is not a number"),
    ],
)
def test_bad_input_gets_a_sentence_under_its_control_and_the_picture_stays(open_page, label, typed, said):
    visited = open_page()
    slots = figure(visited)
    field = slots.get_by_label(label, exact=label == "Slots").first
    field.fill(typed)
    complaint = visited.page.locator(f"#{field.get_attribute('aria-describedby')}")
    eventually(lambda: said in complaint.inner_text(), f"no complaint that says {said}", seconds=FIRST / 1000)
    assert field.get_attribute("aria-invalid") == "true"
    assert slots.locator("svg.computed-figure").is_visible()
    assert float(slots.locator(".live-picture").evaluate("element => getComputedStyle(element).opacity")) < 1
    assert words(slots).inner_text() == expected()

    slots.get_by_role("button", name="Reset").click()
    assert complaint.inner_text() == ""
    assert field.get_attribute("aria-invalid") is None
    assert float(slots.locator(".live-picture").evaluate("element => getComputedStyle(element).opacity")) == 1


@pytest.fixture
def endless(site, tmp_path):
    """The address of a copy of the site whose figures never come to an end with nine slots."""
    folder = tmp_path / "endless"
    shutil.copytree(site, folder)
    with open(folder / "_live" / "reader.py", "a", encoding="utf-8") as program:
        program.write(
            "\n_explore = explore\ndef explore(name, settings):\n"
            "    while json.loads(settings).get('slots') == '9': pass\n    return _explore(name, settings)\n"
        )
    yield from served(folder)


def test_an_endless_computation_is_cut_off_and_the_page_lives_on(open_page, endless):
    visited = open_page(base=endless)
    slots = figure(visited)
    field = slots.get_by_label("Slots", exact=True)
    field.fill("9")
    status = slots.locator(".live-status")
    eventually(lambda: "more than 5 seconds" in status.inner_text(), "it was not cut off", seconds=FIRST / 1000)
    assert slots.locator("svg.computed-figure").is_visible()
    field.fill("3")
    answered(slots)
    assert words(slots).inner_text() == expected(slots="3")


def test_of_quick_changes_only_the_newest_is_computed(open_page):
    visited = open_page("index.html?slots.slots=2")
    slots = figure(visited)
    slots.locator(".live-board svg").first.wait_for(timeout=FIRST)
    asked = visited.page.evaluate(
        """async () => {
            const post = Worker.prototype.postMessage, sent = [];
            Worker.prototype.postMessage = function (message) {
                sent.push(message.settings.slots);
                post.call(this, message);
            };
            const slider = document.querySelector("#live-slots input[type=range]");
            for (let round = 0; round < 202; round++) {
                slider.value = 1 + (round % 9);
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }
            const last = slider.value;
            while (sent.at(-1) !== last) await new Promise((resolve) => setTimeout(resolve, 20));
            return [sent.length, last];
        }"""
    )
    assert asked[0] <= 4
    answered(slots)
    assert words(slots).inner_text() == expected(slots=asked[1])


def test_without_scripts_or_in_an_old_browser_the_still_figure_and_a_sentence_remain(open_page, chromium, address):
    plain = open_page(scripts=False)
    context = chromium.new_context()
    old = context.new_page()
    old.add_init_script("delete globalThis.WebAssembly")
    old.goto(address + "index.html", wait_until="load")
    for page in (plain.page, old):
        slots = page.locator("#live-slots")
        assert slots.locator("svg.computed-figure").is_visible()
        assert "The picture stands still here" in slots.locator(".live-note").inner_text()
        assert slots.locator("input, select, button").count() == 0
    context.close()


def test_a_python_that_cannot_be_loaded_says_so_in_a_sentence(visit, address):
    visited = visit(base=address)
    visited.page.route("**/pyodide.asm.wasm", lambda route: route.abort())
    slots = figure(visited)
    slots.get_by_label("Slots", exact=True).fill("3")
    status = slots.locator(".live-status")
    eventually(lambda: "could not be started" in status.inner_text(), "nothing was said", seconds=FIRST / 1000)
    assert slots.locator("svg.computed-figure").is_visible()
    visited.page.unroute("**/pyodide.asm.wasm")
    slots.get_by_label("Slots", exact=True).fill("2")
    answered(slots)
    assert words(slots).inner_text() == expected(slots="2")


def test_a_library_that_is_missing_is_said_at_a_mere_touch(visit, address):
    visited = visit(base=address)
    visited.page.route("**/enginelab.whl", lambda route: route.fulfill(status=404, body="none"))
    slots = figure(visited)
    slots.get_by_label("Slots", exact=True).click()
    status = slots.locator(".live-status")
    eventually(lambda: "enginelab.whl: 404" in status.inner_text(), "nothing was said", seconds=FIRST / 1000)


def test_without_the_chart_library_the_words_still_answer(visit, address):
    visited = visit(base=address)
    visited.page.route("**/echarts*", lambda route: route.abort())
    slots = figure(visited)
    slots.get_by_label("Slots", exact=True).fill("3")
    slots.locator(".live-guess button", has_text="Show without guessing").click(timeout=FIRST)
    status = slots.locator(".live-status")
    eventually(lambda: "could not be drawn" in status.inner_text(), "nothing was said")
    assert words(slots).inner_text() == expected(slots="3")
    assert slots.locator("svg.computed-figure").is_visible()


def test_a_guess_is_read_as_people_type_it_and_may_have_no_answer(open_page):
    visited = open_page("each.html?routing.shared=1008&routing.new=1&routing.state=decoding")
    routing = figure(visited, "routing")
    routing.locator(".live-board svg").first.wait_for(timeout=FIRST)
    guess = routing.locator(".live-guess")
    for busy, typed, said in (("7", "1,200", "1,200"), ("8", "0,7", "0.7"), ("9", "-0", "0")):
        routing.locator("#live-routing-busy").fill(busy)
        guess.wait_for()
        for none in ("1e999", "0x10", "many"):
            guess.locator("input").fill(none)
            guess.get_by_role("button", name="Show", exact=True).click()
            assert "Type a number" in guess.inner_text()
        guess.locator("input").fill(typed)
        guess.get_by_role("button", name="Show", exact=True).click()
        guess.wait_for(state="hidden")
        assert words(routing).inner_text().startswith(f"You said {said}; there is no such number. ")


HOSTILE = [
    ("slots.slots=%3Cimg%20src=x%20onerror=alert(1)%3E&slots.slots=3", "“<img src=x onerror=a…” is not a number"),
    ("slots.slots=1e309", "1e309 is not"),
    ("slots.slots=%D9%A3", "“٣” is not a number"),
    ("slots.slots=1000000", "1000000 is not"),
    ("slots.lengths=" + "9," * 3000, "at most 24 numbers, and here are 500"),
    ("slots.lengths=" + "a" * 999 + "%F0%9F%98%80bbb", "is not a number"),
]


@pytest.mark.parametrize("query, said", HOSTILE)
def test_an_address_can_do_no_more_than_be_complained_about(open_page, query, said):
    visited = open_page(f"index.html?other=%3Cb%3E&other=2&{query}&__proto__.x=1&slots.__proto__=2")
    slots = figure(visited)
    complaints = slots.locator(".live-complaint")
    eventually(lambda: any(said in each for each in complaints.all_inner_texts()), "no complaint", seconds=FIRST / 1000)
    assert slots.locator("img").count() == 0
    kept = visited.page.evaluate("location.search")
    assert kept.startswith("?other=%3Cb%3E&other=2&") and kept.count("slots.slots=") <= 1
    slots.get_by_role("button", name="Copy link").click()
    assert "copied" in slots.locator(".live-status").inner_text()


def test_a_drawn_picture_keeps_its_shape_on_paper_of_another_width(open_page):
    visited = open_page("index.html?slots.slots=2")
    chart = figure(visited).locator(".live-board .live-chart svg").first
    chart.wait_for(timeout=FIRST)
    # Without a view box a style sheet for print cuts an SVG off instead of scaling it.
    assert chart.evaluate("svg => [svg.width, svg.height].map((each) => each.baseVal.value)") == chart.evaluate(
        "svg => [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height]"
    )


ASK = """async (message) => {
    const python = await import("./_live/python.js".replace("./", document.baseURI.replace(/[^/]*$/, "")));
    const printed = [];
    try {
        return { printed, result: await python.ask(message, { onOutput: (text) => printed.push(text) }) };
    } catch (error) {
        return { printed, sentence: error.message };
    }
}"""


def cell(text, *earlier):
    return {"kind": "run", "earlier": list(earlier), "cell": text}


def test_a_program_of_the_reader_runs_in_the_same_python(open_page):
    page = open_page().page
    page.set_default_timeout(FIRST)
    first = page.evaluate(
        ASK,
        cell("print('a')\nbatching.static([2, 8], slots=1).steps", "from enginelab import batching"),
    )
    assert ("".join(first["printed"]), first["result"]["value"], first["result"]["error"]) == ("a\n", "10", "")
    assert page.evaluate(ASK, cell("1 / 0"))["result"]["error"] == "ZeroDivisionError: division by zero"
    endless = page.evaluate(ASK, cell("print('on and on', flush=True)\nwhile True: pass"))
    assert endless["printed"] and "more than 5 seconds" in endless["sentence"]
    deep = page.evaluate(ASK, cell("def f(n): return f(n + 1)\nf(0)"))
    assert "Recursion" in json.dumps(deep) or "Python had to stop" in json.dumps(deep)
    gone = page.evaluate(ASK, cell("import js\njs.self.close()\nwhile True: pass"))
    assert "more than 5 seconds" in gone["sentence"]
    again = page.evaluate(ASK, cell("1 + 1"))
    assert again["result"]["value"] == "2"


@pytest.mark.parametrize("size, theme", [((1280, 900), "light"), ((390, 844), "dark")])
def test_every_figure_answers_fits_its_page_and_is_accessible(open_page, size, theme, axe):
    visited = open_page("each.html", size=size, theme=theme)
    page = visited.page
    page.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
    for name in explorations.NAMES:
        live = figure(visited, name)
        control = live.locator("input[type=range]").first
        if control.count():
            control.focus()
            page.keyboard.press("ArrowRight")
        else:
            live.locator("select").first.press("ArrowDown")
        if live.locator(".live-guess").count():
            answered(live)
        live.locator(".live-board svg").first.wait_for(timeout=FIRST)
        assert words(live).inner_text()
        charts = len(explorations.find(name)({}).charts)
        assert live.locator(".live-board svg[width]:visible").count() >= min(charts, 1)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    serious = [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] != "minor"]
    assert serious == []


def test_a_drawn_picture_follows_the_theme(open_page):
    visited = open_page("index.html?slots.slots=2")
    slots = figure(visited)
    slots.locator(".live-board svg").first.wait_for(timeout=FIRST)
    fills = "element => [...element.querySelectorAll('.live-board path')].map((each) => each.getAttribute('fill'))"
    light = slots.evaluate(fills)
    visited.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    eventually(lambda: slots.evaluate(fills) != light, "the picture stayed as it was")
    blue = {"light": "rgb(188,220,246)", "dark": "rgb(29,74,115)"}
    assert any("#bcdcf6" == fill or fill == blue["light"] for fill in light)
    assert any("#1d4a73" == fill or fill == blue["dark"] for fill in slots.evaluate(fills))
