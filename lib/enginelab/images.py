"""Ask a running image engine for a picture, over the OpenAI-style endpoint. (The image labs.)

`generate` asks `POST /v1/images/generations`, `read` opens a picture that another program left in a file, `difference`
compares two. What a server sends is never trusted: anything that is not one PNG picture of the size that was asked for
becomes a `ClientError` of one sentence.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import re
import struct
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from .client import ClientError, readable
from .logs import SECRET_SHAPE
from .server import Server

LARGEST_REPLY = 64 * 2**20
LARGEST_SIDE = 4096
SIZE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")
WRONG = (
    *(ValueError, TypeError, KeyError, IndexError, OSError, EOFError, RecursionError, http.client.HTTPException),
    *(SyntaxError, struct.error, Image.DecompressionBombError),  # what Pillow raises for a broken PNG
)


@dataclass(frozen=True)
class Picture:
    """One picture. pixels: array of height x width x 3, whole numbers from 0 to 255; seconds: from asking until the
    whole of it was here (0 for one that was read from a file)."""

    pixels: np.ndarray
    seconds: float = 0.0

    @property
    def size(self) -> str:
        """Width and height, as "256x256"."""
        height, width, _ = self.pixels.shape
        return f"{width}x{height}"


def generate(
    engine: Server | str,
    prompt: str,
    *,
    model: str,
    size: str,
    steps: int,
    seed: int,
    extra: Mapping[str, object] | None = None,
    deadline: float = 300.0,
) -> Picture:
    """Ask `engine` (a running `Server`, or a URL) to paint `prompt`, and wait for the picture.

    model: the name under which the engine serves it; size: "WIDTHxHEIGHT" in pixels; steps: of denoising; seed: of the
    noise that it starts from; extra: further fields of the request, as the engine names them; deadline: seconds.

    Raises ValueError for a size that is none, `ClientError` if no such picture came, and `ServerError`, with the log,
    if the engine has died.
    """
    sides(size)
    body = {"model": model, "prompt": prompt, "n": 1, "size": size, "num_inference_steps": steps, "seed": seed}
    body |= {"response_format": "b64_json", "output_format": "png", **(extra or {})}
    url = engine if isinstance(engine, str) else engine.url
    request = urllib.request.Request(
        f"{url}/v1/images/generations", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    # no proxy has any business with a server on this machine
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    started = time.perf_counter()
    try:
        with opener.open(request, timeout=deadline) as reply:
            text = reply.read(LARGEST_REPLY + 1)
        seconds = time.perf_counter() - started
        if len(text) > LARGEST_REPLY:
            raise ClientError(f"The reply passed {LARGEST_REPLY >> 20} MiB: this is not a picture.")
        [item] = json.loads(text)["data"]
        pixels = decode(base64.b64decode(item["b64_json"], validate=True))
    except (*WRONG, ClientError) as error:
        if isinstance(engine, Server):
            engine.check()
        if isinstance(error, ClientError):
            raise
        raise ClientError(f"The engine sent no picture: {_reason(error)}") from None
    picture = Picture(pixels, seconds)
    if picture.size != size:
        raise ClientError(f"A picture of {size} was asked for, and one of {picture.size} came.")
    return picture


def read(path: str | Path) -> Picture:
    """The PNG picture in a file; `ClientError` if there is none."""
    try:
        return Picture(decode(Path(path).read_bytes()))
    except WRONG as error:
        raise ClientError(f"{Path(path).name} holds no picture: {_reason(error)}") from None


def decode(png: bytes) -> np.ndarray:
    """The pixels of a PNG picture, transparency dropped; raises one of `WRONG` if it is not one, or has a side above
    4096 pixels."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
        if max(image.size) > LARGEST_SIDE:
            raise ValueError(f"a picture of {image.size[0]}x{image.size[1]} is larger than this course looks at")
        return np.asarray(image.convert("RGB"))


def sides(size: str) -> tuple[int, int]:
    """Width and height, in pixels, of a size such as "512x256"; ValueError if it is none."""
    found = SIZE.fullmatch(size)
    if not found or max(map(int, found.groups())) > LARGEST_SIDE:
        raise ValueError(f'size must be "WIDTHxHEIGHT" in pixels, each from 1 to {LARGEST_SIDE}; got {size!r}')
    return int(found[1]), int(found[2])


def difference(one: Picture, other: Picture) -> float:
    """How far two pictures of one size are apart: the mean, over pixels and colours, of the absolute difference (0 to
    255). ValueError if their sizes differ."""
    if one.size != other.size:
        raise ValueError(f"pictures must be of one size to be compared; got {one.size} and {other.size}")
    return float(np.abs(one.pixels.astype(int) - other.pixels.astype(int)).mean())


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, urllib.error.HTTPError):
        try:
            text += f": {error.read(2000).decode(errors='replace')}"
        except OSError:
            pass
    return SECRET_SHAPE.sub("…", " ".join(readable(text).split()))[:300]
