"""The browser files that others made: fetched by hash from the npm registry, kept in the cache, served from the site.

    python site/vendored.py                           fetch what the lock names, so that a build needs no network
    python site/vendored.py --update echarts 6.1.1    renew one entry of the lock

`vendored.json` is the lock. No Node is needed: a package is one archive, whose SHA-512 the lock holds. The archive is
kept in the course's cache folder and checked at each use, so a build after the first asks nobody. npm's own variables
name another registry (`npm_config_registry`), the usual ones a proxy and certificates.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import ssl
import sys
import tarfile
import tempfile
import time
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

from enginelab import environments

LOCK = Path(__file__).with_suffix(".json")
PUBLIC_REGISTRY = "https://registry.npmjs.org/"
SECONDS = 60.0  # without a byte
PAUSES = (1.0, 3.0)  # seconds before the second and the third try
LARGEST = 64 * 2**20  # bytes of an archive; the largest of the lock has 6 MB
CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # Python reads SSL_CERT_FILE itself


class NotVendored(RuntimeError):
    """A browser file that cannot be had: one sentence on why and what to do."""


@dataclass(frozen=True)
class Package:
    """One entry of the lock."""

    name: str
    """The folder of its files on the site, under `_vendored`."""
    package: str
    """Its name in the npm registry."""
    version: str
    licence: str
    integrity: str
    """SHA-512 of its archive, as npm writes it."""
    files: dict[str, str]
    """Name on the site → path in the archive; `other:path` is a file of the entry `other`."""
    notice: str
    """What `NOTICE.txt` beside the files says; empty: no such file."""
    served: bool
    """Whether the site serves it, rather than only the tests use it."""

    @property
    def archive(self) -> Path:
        """Where its archive lies in the cache, whether or not it is there."""
        return environments.cache() / "vendored" / f"{self.name}-{self.version}-{_hex(self.integrity)[:12]}.tgz"


def read(lock: Path = LOCK) -> tuple[Package, ...]:
    """The entries of the lock. Raises `NotVendored` if it cannot be read or would write outside the site's folder."""
    try:
        packages = tuple(Package(**entry) for entry in json.loads(lock.read_text(encoding="utf-8")))
        for package in packages:
            _hex(package.integrity)
    except (OSError, ValueError, TypeError) as error:
        raise NotVendored(f"The lock {lock.name} cannot be read: {error}.") from error
    for package in packages:
        for name in (package.name, *package.files):
            path = PurePosixPath(name)
            if not name or path.is_absolute() or ".." in path.parts or "\\" in name:
                raise NotVendored(f"The lock {lock.name} names a file outside the site: {name!r}.")
    return packages


def contents(package: Package, packages: tuple[Package, ...] | None = None) -> dict[str, bytes]:
    """Name on the site → bytes, of every file of `package`; fetches archives that the cache lacks.

    packages: the lock's entries, among which a file of another is looked for (default: those of `LOCK`).

    Raises `NotVendored` if an archive cannot be fetched or kept, has another hash, or lacks a file.
    """
    held: dict[str, bytes] = {}
    for owner in sorted({of for _, (of, _, _) in _sources(package)}):
        other = _entry(owner, packages or read()) if owner else package
        inside = {target: path for target, (of, _, path) in _sources(package) if of == owner}
        members = _members(other, set(inside.values()))
        held.update((target, members[path]) for target, path in inside.items())
    if package.notice:
        held["NOTICE.txt"] = (package.notice + "\n").encode()
    return held


def file(name: str, target: str) -> bytes:
    """One file of the package `name`: `file("axe-core", "axe.min.js")`. Raises `NotVendored`."""
    packages = read()
    package = _entry(name, packages)
    if target not in package.files:
        raise NotVendored(f"The lock names no file {target} of {name}.")
    return contents(replace(package, files={target: package.files[target]}), packages)[target]


def place(folder: Path, packages: tuple[Package, ...] | None = None) -> None:
    """Write the files of all served packages into `folder`/NAME/. Raises `NotVendored`."""
    packages = packages or read()
    for package in packages:
        if package.served:
            for target, held in contents(package, packages).items():
                _write(folder / package.name / target, held)


def fetch(package: Package) -> bytes:
    """The archive of `package`, from the cache or else from the registry, checked. Raises `NotVendored`."""
    kept = package.archive
    with suppress(OSError):
        if _fits(held := kept.read_bytes(), package.integrity):
            return held
    held = _download(_address(package), f"{package.package} {package.version}")
    if not _fits(held, package.integrity):
        raise NotVendored(
            f"{package.package} {package.version} from {_host()} has another hash than {LOCK.name} names: "
            "it was changed on its way or in the registry, so it is not used."
        )
    _write(kept, held)
    return held


def update(name: str, version: str, lock: Path = LOCK) -> Package:
    """Renew the entry `name` of the lock for `version`, and return it.

    Raises `NotVendored` if the registry does not know that version, or the new archive lacks one of the files.
    """
    packages = read(lock)
    old = _entry(name, packages)
    about = _download(
        f"{_registry()}{quote(old.package, safe='@')}/{quote(version, safe='')}", f"{old.package} {version}"
    )
    try:
        told = json.loads(about)
        new = replace(
            old, version=told["version"], licence=str(told.get("license", "")), integrity=told["dist"]["integrity"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise NotVendored(f"What {_host()} says about {old.package} {version} cannot be read.") from error
    packages = tuple(new if package is old else package for package in packages)
    contents(new, packages)
    _write(lock, (json.dumps([asdict(package) for package in packages], indent=2) + "\n").encode())
    return new


def _entry(name: str, packages: tuple[Package, ...]) -> Package:
    for package in packages:
        if package.name == name:
            return package
    raise NotVendored(f"The lock names no package {name!r}; it has {', '.join(p.name for p in packages)}.")


def _hex(integrity: str) -> str:
    algorithm, _, encoded = integrity.partition("-")
    digest = base64.b64decode(encoded, validate=True)
    if algorithm != "sha512" or len(digest) != 64:
        raise ValueError(f"{integrity!r} is no SHA-512 in npm's form")
    return digest.hex()


def _fits(held: bytes, integrity: str) -> bool:
    return hashlib.sha512(held).hexdigest() == _hex(integrity)


def _sources(package: Package) -> list[tuple[str, tuple[str, str, str]]]:
    return [(target, source.rpartition(":")) for target, source in package.files.items()]


def _members(package: Package, wanted: set[str]) -> dict[str, bytes]:
    """Files of an archive, by their paths below its one top folder; links and folders are no files."""
    # The archive is read in memory and only files that the lock names leave it: no path of its own is ever written.
    held = {}
    with tarfile.open(fileobj=io.BytesIO(fetch(package)), mode="r:gz") as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.isreg() and path in wanted:
                held[path] = archive.extractfile(member).read()
    if lacking := sorted(wanted - held.keys()):
        raise NotVendored(f"{package.package} {package.version} holds no file {', '.join(lacking)}.")
    return held


def _registry() -> str:
    chosen = os.environ.get("npm_config_registry") or os.environ.get("NPM_CONFIG_REGISTRY") or PUBLIC_REGISTRY
    with suppress(ValueError):
        if urlsplit(chosen).scheme in ("https", "http"):
            return chosen.rstrip("/") + "/"
    raise NotVendored("The variable npm_config_registry holds no web address.")


def _host() -> str:
    # without a user and a password, which an address may hold
    return urlsplit(_registry()).netloc.rpartition("@")[2]


def _address(package: Package) -> str:
    return f"{_registry()}{package.package}/-/{package.package.rpartition('/')[2]}-{package.version}.tgz"


def _request(address: str) -> urllib.request.Request:
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(parts._replace(netloc=host).geturl())
    if login:
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    return request


def _trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    for variable in CERTIFICATES:
        if os.path.isfile(bundle := os.environ.get(variable, "")):
            context.load_verify_locations(bundle)
    return context


def _download(address: str, what: str) -> bytes:
    for pause in (*PAUSES, None):
        try:
            with urllib.request.urlopen(_request(address), timeout=SECONDS, context=_trust()) as answer:
                held = answer.read(LARGEST + 1)
        except HTTPError as error:
            if error.code < 500 or pause is None:
                raise NotVendored(f"{_host()} does not give {what}: it answers {error.code} {error.reason}.") from error
        except (OSError, HTTPException, ValueError) as error:
            if pause is None or isinstance(error, ValueError):
                reason = getattr(error, "reason", None) or error
                raise NotVendored(
                    f"Cannot fetch {what} from {_host()} ({reason}): a build needs the network until its browser "
                    "files are in the cache; npm_config_registry names another registry, HTTPS_PROXY a proxy."
                ) from error
        else:
            if len(held) > LARGEST:
                raise NotVendored(f"{what} from {_host()} has more than {LARGEST // 2**20} MiB.")
            return held
        time.sleep(pause)
    raise AssertionError("unreachable")


def _write(path: Path, held: bytes) -> None:
    """Write a whole file or none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(descriptor, "wb") as part:
                part.write(held)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise NotVendored(
            f"Cannot write {path.name} into {path.parent} ({error.strerror}): make room there or make it writable; "
            "ENGINELAB_CACHE names another cache folder."
        ) from error


def main() -> int:
    """Do what the command line asks for; the exit status."""
    parser = argparse.ArgumentParser(
        prog="site/vendored.py", description="Fetch the browser files that the lock names."
    )
    parser.add_argument("--update", nargs=2, metavar=("NAME", "VERSION"), help="renew one entry of the lock")
    given = parser.parse_args()
    try:
        if given.update:
            new = update(*given.update)
            print(f"{new.name} is now {new.package} {new.version}, {new.licence}, {new.integrity}")
        else:
            for package in read():
                print(f"{package.name} {package.version}: {len(fetch(package)):,} bytes")
    except NotVendored as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
