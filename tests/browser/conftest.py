"""The built site in a real browser: what every test of this folder starts from.

`make book` builds the site; BOOK_SITE names another folder of built pages. Any installed Chromium or Chrome does
(Debian's is tried first); without one, or without a built site, these tests say in a sentence what they left out.
Nothing leaves the machine: a request to another address is stopped, and noted for the test to judge.
"""

import os
import shutil
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import vendored

ROOT = Path(__file__).parents[2]
# On Ubuntu `chromium-browser` is a script that asks for snap, so it comes last.
BROWSERS = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
# Root in a container has no sandbox; the rest keeps the browser from asking its maker anything.
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-quic", "--no-first-run")  # fmt: skip
WIDE, PHONE = (1280, 900), (390, 844)
"""Widths and heights, in CSS pixels, that every page has to suit."""


class Quiet(SimpleHTTPRequestHandler):
    """A static host: no compression, and the types that browsers insist on."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json",
        ".woff2": "font/woff2", ".woff": "font/woff", ".svg": "image/svg+xml", ".css": "text/css",
        ".html": "text/html; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".epub": "application/epub+zip",
    }  # fmt: skip

    def log_message(self, *words):
        pass


@dataclass
class Visit:
    """One page as a reader has it open, and what has gone wrong on it so far."""

    page: object
    """Playwright's page."""
    base: str
    """The site's address, with the slash at its end."""
    outside: list[str] = field(default_factory=list)
    """Requests to any other address; none of them got through."""
    said: list[str] = field(default_factory=list)
    """Errors on the console, uncaught exceptions, and requests that failed."""
    loaded: list[str] = field(default_factory=list)
    """What the site was asked for, as paths below `base`."""

    def open(self, path: str = "index.html") -> None:
        """Load a page of the site and wait for its `load` event."""
        self.page.goto(self.base + path, wait_until="load")

    def _note(self) -> None:
        self.page.on("console", lambda message: message.type == "error" and self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("requestfinished", lambda request: self.loaded.append(request.url.removeprefix(self.base)))
        # What was stopped on purpose is in `outside`.
        self.page.on("requestfailed", lambda request: self._ours(request.url) and self.said.append(_failure(request)))

    def _ours(self, url: str) -> bool:
        return url.startswith((self.base, "data:", "blob:", "about:"))

    def _stop(self, route) -> None:
        self.outside.append(route.request.url)
        route.abort()


def _failure(request) -> str:
    return f"{request.url}: {request.failure}"


@pytest.fixture(scope="session")
def built_site() -> Path:
    """The folder of the built pages."""
    folder = Path(os.environ.get("BOOK_SITE") or ROOT / "_build" / "html").resolve()
    if not folder.is_dir():
        pytest.skip("there are no built pages to look at: `make book` first")
    return folder


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that looks for what keeps people out of a page, to be run in it."""
    return vendored.file("axe-core", "axe.min.js").decode()


@pytest.fixture(scope="session")
def site_address(built_site):
    """The built site's address on this machine, with the slash at its end; served from a thread."""
    yield from _served(built_site)


@pytest.fixture
def serve():
    """A function that serves another folder on this machine, and returns its address with the slash at its end."""
    with ExitStack() as running:

        def start(folder: Path) -> str:
            served = _served(folder)
            running.callback(lambda: next(served, None))
            return next(served)

        yield start


def _served(folder: Path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Quiet(*words, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


# Per module: while playwright runs, its event loop is this thread's, so that `asyncio.run` of other tests would fail.
@pytest.fixture(scope="module")
def chromium():
    """Playwright's browser: the first one found that starts."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        pytest.skip("this Python has no playwright, so no page was looked at in a browser")
    tried = []
    with sync_playwright() as play:
        for path in filter(None, [*map(shutil.which, BROWSERS), play.chromium.executable_path]):
            if not Path(path).exists():
                continue
            try:
                browser = play.chromium.launch(executable_path=path, args=FLAGS)
            except Error as error:
                tried.append(f"{path} does not start: {error.message.splitlines()[0]}")
                continue
            yield browser
            browser.close()
            return
        pytest.skip("; ".join(tried) or "no Chromium or Chrome is installed, so no page was looked at in a browser")


@pytest.fixture
def visit(chromium, request):
    """A function that opens a page of the site in a browser of its own: `visit("index.html")` -> Visit.

    size: width and height (`WIDE`, `PHONE`); theme: "light" or "dark"; scripts: False for a reader without them;
    base: another address than the built site's, as `serve` gives it; the rest goes to playwright's `new_context`.
    """
    with ExitStack() as opened:

        def start(
            path: str = "index.html", size=WIDE, theme: str = "light", scripts: bool = True, base: str = "", **more
        ) -> Visit:
            width, height = size
            context = chromium.new_context(
                viewport={"width": width, "height": height},
                color_scheme=theme,
                java_script_enabled=scripts,
                **more,
            )
            opened.callback(context.close)
            visited = Visit(context.new_page(), base or request.getfixturevalue("site_address"))
            context.route(lambda url: not visited._ours(url), visited._stop)
            visited._note()
            visited.open(path)
            return visited

        yield start
