"""The library as a wheel for the reader's browser: the same bytes for the same sources, with no tool but Python.

It holds all of `enginelab`; in a browser its facts and models run, which need the standard library alone.
"""

import base64
import hashlib
import io
import tomllib
import zipfile
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip archive can say
SUFFIXES = (".py", ".json")


def build(root: Path) -> bytes:
    """The wheel of the checkout at `root`. Raises `OSError` where it cannot be read."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    files = {
        path.relative_to(root / "lib").as_posix(): path.read_bytes()
        for path in sorted((root / "lib" / name).rglob("*"))
        if path.suffix in SUFFIXES and "__pycache__" not in path.parts
    }
    about = f"{name}-{version}.dist-info"
    required = [f"Requires-Python: {project['requires-python']}"]
    required += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    files[f"{about}/METADATA"] = "\n".join(
        ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *required, ""]
    ).encode()
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: enginelab\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD").encode()
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return held.getvalue()


def _record(files: dict[str, bytes], own: str) -> str:
    """The wheel's list of its files, with hash and size."""
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{own},,", ""])
