"""Figures that stand in a page: pictures inside them are as light as a page can hold."""

import base64
import io
import re

import numpy as np
from PIL import Image

import inline_figures

SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt" height="9pt">
<g id="a"><image xlink:href="{address}" width="9" height="9"/></g><use xlink:href="#a"/></svg>"""


def png(pixels) -> str:
    with io.BytesIO() as file:
        Image.fromarray(pixels).save(file, "png")
        return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def test_a_painted_picture_weighs_a_fraction_and_looks_the_same():
    waves = 127 + 100 * np.sin(np.linspace(0, 9, 96))[:, None, None] * np.cos(np.linspace(0, [5, 7, 9], 128))[None]
    noise = np.random.default_rng(1).normal(0, 8, waves.shape)
    pixels = np.clip(waves + noise, 0, 255).astype(np.uint8)
    figure = inline_figures.inline(SVG.format(address=png(pixels)), "a picture", "figure-1-")
    (address,) = re.findall(r'href="(data:[^"]+)"', figure)
    kind, _, held = address.partition(",")
    assert kind == "data:image/webp;base64" and len(address) < len(png(pixels)) / 2
    with Image.open(io.BytesIO(base64.b64decode(held))) as shown:
        assert np.abs(np.asarray(shown.convert("RGB"), int) - pixels).mean() < 8
    assert 'href="#figure-1-a"' in figure


def test_a_picture_that_would_grow_stays_as_it_is():
    flat = png(np.zeros((2, 2, 3), np.uint8))
    assert inline_figures.lighter(flat) == min(flat, inline_figures.lighter(flat), key=len)
    assert inline_figures.lighter("data:image/svg+xml,<svg/>") == "data:image/svg+xml,<svg/>"
