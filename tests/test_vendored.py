"""The browser files that others made: only what the lock's hash says gets in, and a trouble is one sentence."""

import base64
import errno
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import vendored as module

ROOT = Path(__file__).parents[1]
CODE = b"export const answer = 42;\n"


@pytest.fixture
def vendored(tmp_path, monkeypatch):
    """The module, with an empty cache, no proxy, and no waiting between tries."""
    monkeypatch.setenv("ENGINELAB_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0))
    return module


def archive(*members: tuple[str, bytes | None]) -> bytes:
    """A package as npm packs it; a member without content is a link to a file outside."""
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as packed:
            for name, held in members:
                info = tarfile.TarInfo(name)
                info.size = len(held or b"")
                if held is None:
                    info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
                packed.addfile(info, io.BytesIO(held or b""))
        return file.getvalue()


def integrity(held: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(held).digest()).decode()


GOOD = archive(("package/dist/thing.js", CODE), ("package/LICENSE", b"Do as you like.\n"), ("package/link.js", None))


@pytest.fixture
def registry(monkeypatch):
    """A registry on this machine: what it answers by path, and the paths and logins that it was asked with."""
    answers, asked = {}, []

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            status, held = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(held)))
            self.end_headers()
            self.wfile.write(held)

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}")
    yield answers, asked
    server.shutdown()
    server.server_close()
    thread.join()


def entry(**changes) -> dict:
    return {
        "name": "thing", "package": "@some/thing", "version": "1.2.3", "licence": "MIT", "integrity": integrity(GOOD),
        "files": {"thing.js": "dist/thing.js", "LICENSE": "LICENSE"}, "notice": "", "served": True,
    } | changes  # fmt: skip


PATH = "/@some/thing/-/thing-1.2.3.tgz"


def package(vendored, **changes):
    return vendored.Package(**entry(**changes))


def test_the_files_of_a_package_are_placed_under_its_name(vendored, registry, tmp_path):
    registry[0][PATH] = (200, GOOD)
    other = package(vendored, name="unserved", served=False)
    borrower = package(vendored, name="borrower", files={"LICENSE": "thing:LICENSE"}, notice="Said.")
    vendored.place(tmp_path / "site", (package(vendored), other, borrower))
    placed = {
        path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*") if path.is_file()
    }
    assert placed == {"thing/thing.js", "thing/LICENSE", "borrower/LICENSE", "borrower/NOTICE.txt"}
    assert (tmp_path / "site/thing/thing.js").read_bytes() == CODE
    assert (tmp_path / "site/borrower/NOTICE.txt").read_text() == "Said.\n"


def test_a_second_build_asks_nobody(vendored, registry):
    registry[0][PATH] = (200, GOOD)
    first = vendored.contents(package(vendored))
    assert len(registry[1]) == 1
    registry[0].clear()
    assert vendored.contents(package(vendored)) == first and len(registry[1]) == 1


def test_a_spoilt_cache_is_not_used(vendored, registry):
    registry[0][PATH] = (200, GOOD)
    vendored.fetch(package(vendored))
    package(vendored).archive.write_bytes(GOOD[:-1])
    assert vendored.fetch(package(vendored)) == GOOD and len(registry[1]) == 2


def test_an_archive_with_another_hash_is_neither_used_nor_kept(vendored, registry):
    registry[0][PATH] = (200, archive(("package/dist/thing.js", b"evil();")))
    with pytest.raises(vendored.NotVendored, match=r"^@some/thing 1\.2\.3 from 127\.0\.0\.1:\d+ has another hash"):
        vendored.contents(package(vendored))
    assert not package(vendored).archive.exists()


@pytest.mark.parametrize("wanted", ["link.js", "../thing.js", "dist"])
def test_only_plain_files_by_their_path_leave_an_archive(vendored, registry, wanted):
    registry[0][PATH] = (200, GOOD)
    with pytest.raises(vendored.NotVendored, match=f"holds no file {wanted}"):
        vendored.contents(package(vendored, files={"thing.js": wanted}))


@pytest.mark.parametrize("target", ["../thing.js", "/thing.js", "a/../../b", "a\\b", ""])
def test_a_lock_cannot_name_a_place_outside_the_site(vendored, tmp_path, target):
    for lock in (entry(files={target: "dist/thing.js"}), entry(name=target)):
        (tmp_path / "lock.json").write_text(json.dumps([lock]))
        with pytest.raises(vendored.NotVendored, match="names a file outside the site"):
            vendored.read(tmp_path / "lock.json")


@pytest.mark.parametrize(
    "held", ["[{]", "{}x", json.dumps([{"name": "thing"}]), json.dumps([entry(integrity="sha1-x")])]
)
def test_a_lock_that_cannot_be_read_is_one_sentence(vendored, tmp_path, held):
    (tmp_path / "lock.json").write_text(held)
    with pytest.raises(vendored.NotVendored, match=r"^The lock lock\.json cannot be read: "):
        vendored.read(tmp_path / "lock.json")


def test_a_registry_that_is_away_is_one_sentence(vendored, registry, monkeypatch):
    registry[0][PATH] = (503, b"")
    with pytest.raises(vendored.NotVendored, match="it answers 503"):
        vendored.fetch(package(vendored))
    assert len(registry[1]) == 3, "a fault of the server may pass"
    with pytest.raises(vendored.NotVendored, match="it answers 404"):
        vendored.fetch(package(vendored, version="9.9.9"))
    assert len(registry[1]) == 4, "what is not there does not come by asking again"
    for address, said in (
        ("http://127.0.0.1:9", "refused"),
        ("nowhere", "no web address"),
        ("http://[", "no web address"),
    ):
        monkeypatch.setenv("npm_config_registry", address)
        with pytest.raises(vendored.NotVendored, match=said):
            vendored.fetch(package(vendored))


def test_a_registry_may_want_a_login_which_no_sentence_tells(vendored, registry, monkeypatch):
    answers, asked = registry
    address = vendored._registry().replace("http://", "http://me:secret@")
    monkeypatch.setenv("npm_config_registry", address)
    answers[PATH] = (200, GOOD)
    assert vendored.fetch(package(vendored)) == GOOD
    assert asked == [(PATH, "Basic " + base64.b64encode(b"me:secret").decode())]
    with pytest.raises(vendored.NotVendored) as raised:
        vendored.fetch(package(vendored, version="9.9.9"))
    assert "secret" not in str(raised.value)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(vendored, registry, tmp_path, monkeypatch):
    registry[0][PATH] = (200, GOOD)

    def full(*paths):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(vendored.os, "replace", full)
    with pytest.raises(vendored.NotVendored, match="No space left on device.*make room"):
        vendored.fetch(package(vendored))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_update_renews_the_entry_and_keeps_the_rest(vendored, registry, tmp_path):
    newer = archive(("package/dist/thing.js", b"export const answer = 43;\n"), ("package/LICENSE", b"As before.\n"))
    told = {"version": "1.3.0", "license": "MIT", "dist": {"integrity": integrity(newer)}}
    registry[0]["/@some%2Fthing/1.3.0"] = (200, json.dumps(told).encode())
    registry[0]["/@some/thing/-/thing-1.3.0.tgz"] = (200, newer)
    lock = tmp_path / "lock.json"
    lock.write_text(json.dumps([entry(), entry(name="other")]))
    assert vendored.update("thing", "1.3.0", lock).version == "1.3.0"
    new, other = vendored.read(lock)
    assert vendored.contents(new)["thing.js"] == b"export const answer = 43;\n"
    assert other == package(vendored, name="other")


def test_an_update_to_a_package_without_our_files_changes_nothing(vendored, registry, tmp_path):
    empty = archive(("package/README.md", b"moved"))
    told = {"version": "2.0.0", "license": "MIT", "dist": {"integrity": integrity(empty)}}
    registry[0]["/@some%2Fthing/2.0.0"] = (200, json.dumps(told).encode())
    registry[0]["/@some/thing/-/thing-2.0.0.tgz"] = (200, empty)
    lock = tmp_path / "lock.json"
    lock.write_text(json.dumps([entry()]))
    before = lock.read_bytes()
    for name, version, said in (
        ("thing", "2.0.0", "holds no file"),
        ("none", "1", "no package"),
        ("thing", "7", "404"),
    ):
        with pytest.raises(vendored.NotVendored, match=said):
            vendored.update(name, version, lock)
    assert lock.read_bytes() == before


def test_the_lock_serves_each_package_with_its_licence(vendored):
    packages = vendored.read()
    for one in packages:
        assert one.licence and any(target.startswith("LICENSE") for target in one.files), one.name
    names = [one.name for one in packages]
    assert len(names) == len(set(names)) and {"pyodide", "echarts"} <= {one.name for one in packages if one.served}


def test_the_first_view_loads_few_fonts(vendored, monkeypatch):
    """Two families, and at most 120 kB of them where a page has no letters beyond Latin-1."""
    monkeypatch.undo()  # the real cache, which a build has filled
    fonts = [one for one in vendored.read() if one.licence.startswith("OFL")]
    if not all(one.archive.is_file() for one in fonts):
        pytest.skip("the fonts have not been fetched yet: `make book` does")
    held = [vendored.contents(one) for one in fonts]
    first = sum(len(font) for files in held for name, font in files.items() if name.startswith(("latin.", "latin-it")))
    assert len(fonts) == 2 and 0 < first <= 120_000
