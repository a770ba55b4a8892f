"""The whole book as one EPUB, for reading away from a screen with a browser: `python site/ebook.py`, after `make book`.

Sphinx's own EPUB builder does it, from what the site's build has read and run. Here it leaves out what a book cannot
use (scripts, the site's styles), keeps figures as SVG files with their alternative texts, and packs the same bytes
from the same pages. The result is copied into the site, and checked: every file is named, every link leads somewhere.
"""

import os
import re
import shutil
import sys
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from sphinx.builders.epub3 import Epub3Builder

from enginelab.plot.palette import PALETTE

NAME = "inference-engines.epub"
STYLES = ("pygments.css", "epub.css", "ebook.css")
KEPT = {".xhtml", ".svg", ".png", ".jpg", ".gif"}
# The theme's mark at a fold; a book shows a fold in its own way, or open.
FOLD_MARK = re.compile(r'<span class="sd-summary-state-marker.*?</span>', re.DOTALL)
# A colour of the site's themes, which few book readers know as a variable.
VARIABLE = re.compile(r"var\(--figure-([a-z-]+)\)")
# What a manifest must say of a page that holds one of these.
SPECIAL = {"svg": b"<svg", "mathml": b"<math"}
EARLIEST = 315_532_800  # 1 January 1980, before which a zip file has no dates


class Ebook(Epub3Builder):
    """Sphinx's builder, without what belongs to the site."""

    def add_css_file(self, filename, **kwargs):
        if filename in STYLES:
            super().add_css_file(filename, **kwargs)

    def add_js_file(self, filename, **kwargs):
        pass

    def init_css_files(self):
        super().init_css_files()
        self.add_css_file("ebook.css", priority=900)

    def handle_finish(self):
        out = Path(self.outdir)
        shutil.copyfile(Path(__file__).with_name("ebook.css"), out / "_static" / "ebook.css")
        for path in sorted(out.rglob("*")):
            inside = path.relative_to(out)
            in_static = inside.parts[0] == "_static"
            if path.is_file() and (path.name not in STYLES if in_static else path.suffix not in KEPT):
                path.unlink()
        super().handle_finish()

    def build_content(self):
        super().build_content()
        path = Path(self.outdir, "content.opf")
        path.write_text(
            re.sub(r'<item [^>]*href="([^"]+)"[^>]*', self._with_properties, path.read_text("utf-8")), "utf-8"
        )

    def _with_properties(self, item: re.Match) -> str:
        page = Path(self.outdir, unquote(item[1]))
        if page.suffix != ".xhtml" or "properties=" in item[0] or not page.is_file():
            return item[0]
        held = page.read_bytes()
        found = [name for name, mark in SPECIAL.items() if mark in held]
        return item[0].rstrip(" /") + (f' properties="{" ".join(found)}" /' if found else " /")

    def build_epub(self):
        date = time.gmtime(max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))))[:6]
        with zipfile.ZipFile(Path(self.outdir, NAME), "w") as book:
            for name in ("mimetype", "META-INF/container.xml", "content.opf", "toc.ncx", *self.files):
                entry = zipfile.ZipInfo(name, date)
                entry.external_attr = 0o644 << 16
                # Its first entry says what it is to programs that do not unpack it.
                entry.compress_type = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
                book.writestr(entry, Path(self.outdir, name).read_bytes())


def _clean(app, page, template, context, doctree):
    if app.builder.name == "epub" and "body" in context:
        body = FOLD_MARK.sub("", context["body"])
        context["body"] = VARIABLE.sub(lambda found: PALETTE[found[1]].light, body)


def setup(app):
    app.setup_extension("sphinx.builders.epub3")
    app.add_builder(Ebook, override=True)
    app.connect("html-page-context", _clean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# --- checking ------------------------------------------------------------------------------------------------------

OPF = "{http://www.idpf.org/2007/opf}"
XHTML = "{http://www.w3.org/1999/xhtml}"


def faults(book: Path) -> list[str]:
    """What is wrong with an EPUB file, as sentences: its parts, its links, what a book must not hold.

    This is less than epubcheck asks, which is a Java program.
    """
    with zipfile.ZipFile(book) as archive:
        first = archive.infolist()[0]
        names = archive.namelist()
        held = {name: archive.read(name) for name in names}
    found = [f"{name} is packed twice" for name in sorted({name for name in names if names.count(name) > 1})]
    if (first.filename, first.compress_type) != ("mimetype", zipfile.ZIP_STORED) or held["mimetype"].strip() != MIME:
        found.append("its first entry is not the uncompressed type of an EPUB")
    trees = {}
    for name, text in held.items():
        if name.endswith((".xhtml", ".opf", ".ncx", ".xml", ".svg")):
            try:
                trees[name] = ET.fromstring(text)
            except ET.ParseError as error:
                found.append(f"{name} is not well-formed: {error}")
    package = trees["content.opf"]
    items = {item.get("id"): unquote(item.get("href")) for item in package.iter(f"{OPF}item")}
    named = set(items.values())
    unnamed = held.keys() - named - {"mimetype", "META-INF/container.xml", "content.opf"}
    found += [f"{name} is not in the manifest" for name in sorted(unnamed)]
    found += [f"the manifest names {name}, which is not there" for name in sorted(named - held.keys())]
    spine = [items.get(each.get("idref"), "") for each in package.iter(f"{OPF}itemref")]
    if len(set(spine)) < len(spine) or "" in spine:
        found.append("the reading order names a page twice, or one that is not there")
    pages = {name for name in trees if name.endswith(".xhtml")} - {"nav.xhtml"}
    found += [f"{name} is not in the reading order" for name in sorted(pages - set(spine))]
    anchors = {name: [each.get("id") for each in trees[name].iter() if each.get("id")] for name in trees}
    for name, ids in anchors.items():
        if name.endswith(".xhtml"):
            found += [
                f"{name}: the id {each} stands there twice" for each in sorted({i for i in ids if ids.count(i) > 1})
            ]
            found += [f"{name}: {sentence}" for sentence in _page_faults(trees[name], name, anchors, held.keys())]
    return found


MIME = b"application/epub+zip"


def _page_faults(page: ET.Element, name: str, anchors: dict[str, list[str]], files) -> Iterator[str]:
    for element in page.iter():
        tag = element.tag.removeprefix(XHTML)
        if tag in ("script", "button", "form", "textarea", "iframe"):
            yield f"a book cannot hold <{tag}>"
        if tag == "img" and not element.get("alt"):
            yield f"the picture {element.get('src')} has no alternative text"
        for attribute in ("href", "src"):
            target = element.get(attribute)
            if target is None or urlsplit(target).scheme:
                continue
            path, _, anchor = target.partition("#")
            aim = normpath(str(PurePosixPath(name).parent / unquote(path))) if path else name
            if aim not in files:
                yield f"{target} leads nowhere"
            elif anchor and unquote(anchor) not in anchors.get(aim, ()):
                yield f"{target} leads to a place that is not there"


# --- building ------------------------------------------------------------------------------------------------------


def main(root: Path) -> int:
    """Make the EPUB from the last build's pages, check it, and put it into the site. Returns the exit code."""
    import build as site

    build, began = root / "_build", time.monotonic()
    if not (build / "html" / "index.html").is_file():
        print("The site is not built yet: `make book` first.")
        return 1
    site.prepare(build)
    site.nocolor()
    out = build / "epub"
    shutil.rmtree(out, ignore_errors=True)
    with open(build / "epub.log", "w", encoding="utf-8") as log:
        listener = site.Listener(log, sys.stdout, root)
        with redirect_stdout(listener), redirect_stderr(listener):
            outcome = site.build_sphinx(
                root,
                out,
                noconfig=True,
                path_config=root / "_config.yml",
                confoverrides={"external_toc_path": str(root / "_toc.yml"), "latex_individualpages": False},
                doctreedir=build / "doctrees",
                builder="epub",
                warningiserror=True,
                keep_going=True,
            )
    complaints = list(dict.fromkeys(listener.complaints))
    if isinstance(outcome, BaseException):
        complaints.append(site.why(outcome, root))
    elif not complaints:
        complaints = faults(out / NAME)
    if outcome or complaints:
        print("\nThe EPUB is NOT made:", *complaints, "The full record is _build/epub.log.", sep="\n")
        return 1
    shutil.copyfile(out / NAME, build / "html" / NAME)
    size = (out / NAME).stat().st_size / 1e6
    print(f"The EPUB is made, in {time.monotonic() - began:.0f} s: _build/html/{NAME}, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).absolute().parents[1]))
