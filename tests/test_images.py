"""The client for pictures against a server that lies: what is no picture of the right size is one clear error."""

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from enginelab import images
from enginelab.client import ClientError


def png(width=32, height=16, colour=(200, 100, 50), kind="PNG"):
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, kind)
    return file.getvalue()


def reply(picture: bytes) -> bytes:
    return json.dumps({"data": [{"b64_json": base64.b64encode(picture).decode()}]}).encode()


@pytest.fixture
def serve():
    """A server that answers every request with what it is given, and keeps what it was asked."""
    servers = []

    def start(body: bytes, status: int = 200):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                """Tests keep quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(url, size="32x16", **extra):
    return images.generate(url, "a cube", model="m", size=size, steps=4, seed=7, deadline=20, **extra)


def test_a_picture_comes_as_it_was_painted(serve):
    url, asked = serve(reply(png()))
    picture = ask(url, extra={"true_cfg_scale": 1.0})
    assert picture.size == "32x16" and picture.pixels.shape == (16, 32, 3) and picture.seconds > 0
    assert (picture.pixels == (200, 100, 50)).all()
    path, body = asked[0]
    assert path == "/v1/images/generations"
    wanted = {"prompt": "a cube", "model": "m", "size": "32x16", "num_inference_steps": 4, "seed": 7}
    assert body.items() >= (wanted | {"true_cfg_scale": 1.0, "n": 1, "output_format": "png"}).items()


def bomb() -> bytes:
    """A PNG whose header claims 60,000 x 60,000 pixels."""
    picture = bytearray(png())
    picture[16:24] = (60_000).to_bytes(4, "big") * 2
    return bytes(picture)


@pytest.mark.parametrize(
    "body, says",
    [
        (b"", "sent no picture"),
        (b"<html>", "sent no picture"),
        (b"[]", "sent no picture"),
        (b'{"data": []}', "sent no picture"),
        (b'{"data": [{"b64_json": null}]}', "sent no picture"),
        (b'{"data": [{"b64_json": "\\u0000!"}]}', "sent no picture"),
        (b"[" * 100_000, "sent no picture"),
        (reply(b"no picture at all"), "sent no picture"),
        (reply(png()[:60]), "sent no picture"),
        (reply(png(kind="GIF")), "sent no picture"),
        (reply(bomb()), "sent no picture"),
        (reply(png(5000, 1)), "larger than this course looks at"),
        (reply(png(16, 32)), "A picture of 32x16 was asked for, and one of 16x32 came."),
    ],
)
def test_what_is_no_such_picture_is_one_sentence(serve, body, says):
    with pytest.raises(ClientError, match=says) as error:
        ask(serve(body)[0])
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_an_endless_reply_is_cut_short(serve, monkeypatch):
    monkeypatch.setattr(images, "LARGEST_REPLY", 1000)
    with pytest.raises(ClientError, match="this is not a picture"):
        ask(serve(b"x" * 2000)[0])


def test_the_engines_own_words_are_passed_on_without_secrets_or_control_characters(serve):
    url, _ = serve(b'{"detail": "seed is odd \x1b[31m hf_abcdefghijklmnopqrstuvwxyz"}', 422)
    with pytest.raises(ClientError, match="seed is odd") as error:
        ask(url)
    assert "hf_" not in str(error.value) and "\x1b" not in str(error.value)


def test_nobody_there_is_said():
    with pytest.raises(ClientError, match="sent no picture"):
        ask("http://127.0.0.1:9")


@pytest.mark.parametrize("size", ["", "32", "0x16", "32x16x8", "32 x 16", "9999x16", "-1x16"])
def test_a_size_that_is_none_is_refused_before_anything_is_sent(size):
    with pytest.raises(ValueError, match="WIDTHxHEIGHT"):
        ask("http://127.0.0.1:9", size=size)


def test_difference_is_the_mean_over_pixels_and_colours():
    one = images.Picture(np.zeros((2, 2, 3), np.uint8))
    other = images.Picture(np.array([[[255, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 9, 0]]], np.uint8))
    assert images.difference(one, one) == 0
    assert images.difference(one, other) == images.difference(other, one) == (255 + 9) / 12
    with pytest.raises(ValueError, match="of one size"):
        images.difference(one, images.Picture(np.zeros((2, 3, 3), np.uint8)))


def test_a_picture_is_read_from_a_file(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").write_bytes(b"nothing")
    assert images.read(tmp_path / "a.png").size == "32x16"
    for name in ("b.png", "missing.png"):
        with pytest.raises(ClientError, match=f"{name} holds no picture"):
            images.read(tmp_path / name)
