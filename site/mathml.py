"""Formulas as MathML, made when the book is built: no page loads a script for them, and a screen reader reads them.

They are written with the `math` role and directive; a dollar is a dollar.
"""

import xml.etree.ElementTree as ET

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3, "mroot": 2}
"""Elements that stand for nothing unless they hold that many others."""

logger = logging.getLogger(__name__)


def mathml(latex: str, display: str) -> str:
    """A formula as a `math` element; display is "inline" or "block". Raises `ValueError` if it cannot be read."""
    try:
        element = convert(latex, display=display)
        read = ET.fromstring(element)
    # The converter has a dozen exceptions with no common name, no words, and a few of Python's own besides.
    except Exception as error:
        raise ValueError(f"the formula {latex!r} cannot be read ({type(error).__name__})") from error
    for each in read.iter():
        name = each.tag.rpartition("}")[2]
        if (each.text or "").startswith("\\") or len(each) != PARTS.get(name, len(each)):
            raise ValueError(f"the formula {latex!r} cannot be read, at {each.text or name}")
    return element


def _visit(display: str):
    def visit(translator, node):
        try:
            formula = mathml(node.astext(), display)
        except ValueError as error:
            logger.warning("%s", error, location=node)
            formula = translator.encode(node.astext())
        tag = "div" if display == "block" else "span"
        translator.body.append(f"{translator.starttag(node, tag, '', CLASS='math')}{formula}</{tag}>")
        raise nodes.SkipNode

    return visit


def _depart(translator, node):
    """Nothing is left to do: the visit wrote the whole element."""


def setup(app):
    app.add_html_math_renderer("mathml", (_visit("inline"), _depart), (_visit("block"), _depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
