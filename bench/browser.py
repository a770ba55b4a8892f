"""How fast the live figures answer in a real browser: from the first touch to the first answer, and then each next one.

The pages are those of `make book`, served from this machine; BOOK_SITE names another folder of them. Every start is in
a browser profile of its own, with nothing kept. An answer counts when the page has taken it in: it is drawn, or the
reader is asked for a guess first. Times depend on what else the machine does, so its load stands beside them.

    python bench/browser.py               about three minutes
    python bench/browser.py --starts 1    fewer starts
"""

import argparse
import os
import shutil
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from statistics import median

from enginelab import explorations
from enginelab.table import Table

ROOT = Path(__file__).parents[1]
SITE = Path(os.environ.get("BOOK_SITE") or ROOT / "_build" / "html")
# The browser tests know how to start a browser and serve the pages, and start from the site's own programs.
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "site")]
WAIT = 180_000  # milliseconds: only an end to waiting

# Moves a figure's first slider or choice again and again; resolves with the milliseconds until each answer is there.
ASK = """([name, count]) => new Promise((resolve) => {
  const figure = document.getElementById(`live-${name}`);
  const control = figure.querySelector("input[type=range], select");
  const times = [];
  let begun = 0;
  const move = () => {
    if (control.tagName === "SELECT") control.selectedIndex = (control.selectedIndex + 1) % control.options.length;
    else if (Number(control.value) >= Number(control.max)) control.value = control.min;
    else control.stepUp(Math.max(1, Math.round((control.max - control.min) / control.step / 20)));
    begun = performance.now();
    control.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const picture = figure.querySelector(".live-picture");
  new MutationObserver(() => {
    if (!begun || picture.hasAttribute("aria-busy")) return;
    times.push(performance.now() - begun);
    begun = 0;
    if (times.length === count) resolve(times);
    else setTimeout(move, 50);
  }).observe(picture, { attributeFilter: ["aria-busy"] });
  move();
})"""


def pages(site: Path) -> dict[str, str]:
    """The first page of each live figure, by the figure's name."""
    texts = {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))
    }
    found = {name: [page for page, text in texts.items() if f'id="live-{name}"' in text] for name in explorations.NAMES}
    return {name: where[0] for name, where in found.items() if where}


def measure(browser, address: str, page: str, name: str, count: int) -> list[float]:
    """Milliseconds to each of `count` answers of one figure, the first with the start of Python, in a fresh profile."""
    context = browser.new_context()
    try:
        opened = context.new_page()
        opened.set_default_timeout(WAIT)
        opened.goto(address + page, wait_until="load")
        return opened.evaluate(ASK, [name, count])
    finally:
        context.close()


def main() -> str:
    """Measure, print, and return an empty sentence, or one that says why there was nothing to measure."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--starts", type=int, default=5, help="how often Python is started")
    starts = options.parse_args().starts
    if not (SITE / "index.html").is_file():
        return "no live figure was measured: there are no built pages, `make book` first"
    try:
        from conftest import BROWSERS, FLAGS, Quiet
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        return f"no live figure was measured: this Python has no {error.name}"
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        return "no live figure was measured: no Chromium or Chrome is installed"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    where = pages(SITE)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {len(where)} live figures")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=FLAGS)
        ask = partial(measure, browser, f"http://127.0.0.1:{server.server_port}/")
        first = [ask(where["slots"], "slots", 1)[0] / 1e3 for _ in range(starts)]
        print("touch to first answer, s: " + ", ".join(f"{seconds:.1f}" for seconds in first))
        rows = []
        for name, page in where.items():
            times = ask(page, name, 12)[1:]
            rows.append((name, f"{median(times):.0f}", f"{max(times):.0f}"))
        browser.close()
    server.shutdown()
    print(Table(("next answers, ms", "median", "slowest of 11"), tuple(rows)))
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return ""


if __name__ == "__main__":
    if left_out := main():
        print(left_out)
