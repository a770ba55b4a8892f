"""404.html: what a static host shows for an address where nothing is, at whatever depth, under whatever path.

The host answers with this file at the missing address, so nothing relative in it can be relied on, and the path under
which the site lies is not known when it is built. So its style stands in the page, and its script is asked for at
each folder above: the one that is found knows from its own address where the site begins, and completes the links.
Without scripts, two plain links lead up.
"""

import shutil
from html import escape
from pathlib import Path

from enginelab.plot.palette import PALETTE

HERE = Path(__file__).with_name("not_found")
SCRIPT = "_static/not_found.js"
THEMES = ("light", "dark")
DEPTHS = 6
"""How many folders above the missing address are tried; the deepest page of the course lies in one."""


def page(title: str) -> str:
    """The page, for a course of that title."""
    colours = {theme: " ".join(f"--{name}: {getattr(c, theme)};" for name, c in PALETTE.items()) for theme in THEMES}
    scripts = "\n".join(f'  <script defer src="{"../" * up}{SCRIPT}"></script>' for up in range(DEPTHS))
    text = (HERE / "404.html").read_text(encoding="utf-8")
    for name, value in {"TITLE": escape(title), "LIGHT": colours["light"], "DARK": colours["dark"]}.items():
        text = text.replace(f"{{{name}}}", value)
    return text.replace("  {SCRIPTS}", scripts)


def _write(app, failure):
    if failure is None and app.builder.name == "html":
        out = Path(app.outdir)
        (out / "404.html").write_text(page(app.config.html_title or app.config.project), encoding="utf-8")
        shutil.copyfile(HERE / "not_found.js", out / SCRIPT)


def setup(app):
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
