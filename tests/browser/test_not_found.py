"""404.html as a static host shows it: at the root and under a path, at any depth, with and without scripts."""

import shutil
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest


@pytest.fixture
def host(built_site, tmp_path):
    """A function that serves the site under a path as GitHub Pages does, with its 404.html for what is missing."""
    running = []

    def start(under: str) -> str:
        folder = tmp_path / under
        for name in ("index.html", "404.html", "search.html", "_static", "chapters"):
            source, target = built_site / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)

        class Host(SimpleHTTPRequestHandler):
            def __init__(self, *given):
                super().__init__(*given, directory=str(tmp_path))

            def send_error(self, code, message=None, explain=None):
                page = Path(folder, "404.html").read_bytes()
                self.send_response(code)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *words):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Host)
        Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}/{under}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("under", ["", "repo/"])
@pytest.mark.parametrize("missing", ["gone.html", "chapters/gone.html", "a/b/c/d/", "404.html"])
def test_its_links_lead_to_the_site_wherever_it_is_shown(host, visit, under, missing):
    base = host(under)
    page = visit(missing, base=base).page
    assert page.get_by_role("heading", name="no page at this address").is_visible()
    links = page.locator("a:visible").evaluate_all("all => all.map((each) => each.href)")
    assert links == [base + name for name in ("index.html", "chapters/glossary.html", "chapters/atlas.html")]
    page.get_by_role("searchbox").fill("--tp")
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_url(base + "search.html?q=--tp")


def test_without_scripts_one_of_two_links_is_the_start_page(host, visit):
    base = host("repo/")
    for missing, place in (("gone.html", 0), ("chapters/gone.html", 1)):
        page = visit(missing, base=base, scripts=False).page
        links = page.locator("a:visible").evaluate_all("all => all.map((each) => each.href)")
        assert links[place] == base


def test_a_browser_that_keeps_nothing_follows_the_system(host, visit):
    visited = visit("missing.html", base=host(""), theme="dark")
    refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    visited.page.add_init_script(refuse)
    visited.said.clear()
    visited.page.reload()
    assert visited.page.get_attribute("html", "data-theme") == "dark"
    assert "no" not in visited.said
