"""Formulas as MathML: they say what was written, and one that cannot be read is a complaint of the build."""

import xml.etree.ElementTree as ET

import pytest

import mathml


def test_a_formula_has_its_parts_in_order():
    element = ET.fromstring(mathml.mathml(r"t = \frac{2 P}{B} + x_i^2 \le 5 \text{ tokens/s}", "block"))
    names = [each.tag.rpartition("}")[2] for each in element.iter()]
    assert element.get("display") == "block" and {"mfrac", "msubsup", "mtext"} <= set(names)
    assert "".join(element.itertext()).replace("\xa0", " ") == "t=2PB+xi2≤5 tokens/s"


@pytest.mark.parametrize("latex", [r"\frac{a", r"x_{", r"\nosuchcommand{x}", "a & b", r"\left( a", ""])
def test_a_formula_that_cannot_be_read_is_an_error(latex):
    with pytest.raises(ValueError, match="the formula"):
        mathml.mathml(latex, "inline")
