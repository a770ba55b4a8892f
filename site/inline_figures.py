"""Computed figures become part of their page, so that they follow its light and dark theme.

A figure loaded as an image file cannot see the page's colours; the same SVG set into the page can. Its colours are
those of `enginelab.plot.palette`, and each turns into a CSS variable with a light and a dark value.
"""

import base64
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from enginelab.plot.palette import PALETTE

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
PNG, WEBP = "data:image/png;base64,", "data:image/webp;base64,"
QUALITY = 90
HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
VARIABLE = {colour.light: f"var(--figure-{name})" for name, colour in PALETTE.items()}

logger = logging.getLogger(__name__)


def stylesheet() -> str:
    """The palette as CSS variables, for the light and the dark theme."""
    rules = []
    for selector, theme in (("html", "light"), ('html[data-theme="dark"]', "dark")):
        values = " ".join(f"--figure-{name}: {getattr(colour, theme)};" for name, colour in PALETTE.items())
        rules.append(f"{selector} {{ {values} }}\n")
    return "".join(rules)


def foreign_colours(svg: str) -> set[str]:
    """Colours of a figure that the palette does not name: they would stay as they are on a dark page."""
    return {value.lower() for value in HEX.findall(svg)} - VARIABLE.keys()


def inline(svg: str, alt: str, prefix: str) -> str:
    """An SVG file as an element of an HTML page.

    alt     what a reader who does not see the figure is told
    prefix  put before every id, because ids must differ between the figures of one page
    """
    root = ET.fromstring(svg)
    _drop(root, "metadata", "style")
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                element.set(key, prefix + value)
            elif key == f"{{{XLINK}}}href":
                del element.attrib[key]
                element.set(
                    "href", lighter(value) if value.startswith("data:") else value.replace("#", f"#{prefix}", 1)
                )
            elif key in ("fill", "stroke") and value.lower() in VARIABLE:
                # A presentation attribute takes no CSS variable; a style does.
                del element.attrib[key]
                element.set("style", f"{key}: {VARIABLE[value.lower()]}; {element.get('style', '')}")
            else:
                value = value.replace("url(#", f"url(#{prefix}")
                element.set(key, HEX.sub(lambda found: VARIABLE.get(found[0].lower(), found[0]), value))
    width = root.get("width", "100%")
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    root.attrib.update(
        {
            "role": "img",
            "aria-label": alt,
            "class": "computed-figure",
            "style": f"max-width: {width}",
            # What matplotlib puts into a style element, which in a page would reach everything else too.
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
        }
    )
    ET.register_namespace("", SVG)
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def lighter(address: str) -> str:
    """A picture inside a figure, as a page may hold it: WebP where that is shorter, at a quality that the eye takes.

    A PNG of a painted picture weighs as much as ten pages; the notebook, which the page offers, keeps every pixel.
    """
    if not address.startswith(PNG):
        return address
    with Image.open(io.BytesIO(base64.b64decode(address.removeprefix(PNG)))) as picture, io.BytesIO() as file:
        picture.save(file, "webp", quality=QUALITY, method=6)
        shorter = WEBP + base64.b64encode(file.getvalue()).decode()
    return min(address, shorter, key=len)


def _drop(root: ET.Element, *names: str) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{SVG}}}{name}" for name in names}:
                parent.remove(child)


class InlineFigures(SphinxPostTransform):
    """Replace each SVG that a cell made by the element itself; ask for the text that every figure needs."""

    default_priority = 20
    formats = ("html",)

    def run(self, **kwargs):
        if self.app.builder.name == "epub":
            return  # a book has no themes, and takes the files
        made_by_cells = Path(self.env.mystnb_config.output_folder).resolve()
        number = 0
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.env.srcdir, image["uri"]).resolve()
            if not path.is_relative_to(made_by_cells):
                continue
            number += 1
            if not image.get("alt"):
                logger.warning("a computed figure has no alt text: give its cell `mystnb: image: alt:`", location=image)
            if path.suffix != ".svg":
                continue
            svg = path.read_text(encoding="utf-8")
            if strange := foreign_colours(svg):
                logger.warning(
                    "a figure has colours that plot.PALETTE does not name, so a dark page cannot change them: %s",
                    ", ".join(sorted(strange)),
                    location=image,
                )
            element = inline(svg, image.get("alt", ""), f"figure-{number}-")
            image.replace_self(nodes.raw("", element, format="html"))


def _write_stylesheet(app):
    if app.builder.format == "html":
        target = Path(app.outdir, "_static", "palette.css")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(stylesheet(), encoding="utf-8")


def setup(app):
    app.add_post_transform(InlineFigures)
    app.connect("builder-inited", _write_stylesheet)
    app.add_css_file("palette.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
