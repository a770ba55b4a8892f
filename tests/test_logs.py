"""What of an engine's log may be shown."""

from __future__ import annotations

import pytest

from enginelab import logs


def same(text: str) -> str:
    return text


@pytest.mark.parametrize(
    "line, shown",
    [
        (
            "(EngineCore pid=7) INFO 12-01 10:00:00 [core.py:11] Loading weights took 0.2 s",
            "Loading weights took 0.2 s",
        ),
        ("[2026-12-01 10:00:00] Load weight begin.", "Load weight begin."),
        ("INFO:     Waiting for application startup.", "Waiting for application startup."),
        ("Loading weights\nW1201 11:16:12.139 24 torch/triton.py:53] Triton not available", "Loading weights"),
        ("Loading weights\n(EngineCore pid=7) WARNING 12-01 10:00:00 [a.py:1] slow", "Loading weights"),
        ("Loading weights\n…/a.py:223: UserWarning: no Triton\n  warnings.warn(", "Loading weights"),
        ("x" * 200, "x" * 99 + "…"),
        ("Loading:  10%\rLoading: 100%\r", "Loading: 100%"),
        ("\x1b[32mready\x1b[0m\x07", "ready"),
        ("Starting to load model /home/someone/models/tiny ...", "Starting to load model …/tiny ..."),
        (
            "rank=0 init_method=file:///tmp/dist_8d5e at http://host/v1/x",
            "rank=0 init_method=…/dist_8d5e at http://host/v1/x",
        ),
        ("listening on http://127.0.0.1:8000/health", "listening on http://127.0.0.1:8000/health"),
    ],
)
def test_stage(tmp_path, line, shown):
    log = tmp_path / "log"
    log.write_bytes(b"before\n" + line.encode() + b"\n\n")
    assert logs.stage(log, same) == shown


def test_a_log_may_hold_anything(tmp_path):
    log = tmp_path / "log"
    assert logs.lines(log) == [] and logs.stage(log, same) == ""
    log.write_bytes(bytes(range(256)) * 2000 + b"\n" + b"x" * 5000)
    shown = logs.explain("It died.", log, same)
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert max(map(len, shown.splitlines())) <= 310


def test_the_first_error_is_shown_when_it_lies_further_up(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "WARNING 12-01 not this: OSError: later\nOSError: the cause\n" + "noise\n" * 30 + "RuntimeError: see above\n"
    )
    shown = logs.explain("It died.", log, same, last=5).splitlines()
    assert shown[:3] == ["It died.", "The first error in its log:", "  OSError: the cause"]
    assert shown[-1] == "  RuntimeError: see above" and len(shown) == 9


def test_redactor_blanks_longer_secrets_first():
    hide = logs.redactor(["--api-key=abcdef-ghi"], {"MY_KEY": "abcdef", "PATH": "visible", "OTHER_TOKEN": "short"})
    assert hide("abcdef-ghi abcdef visible short") == "[secret] [secret] visible short"
    assert hide("Authorization: Bearer x.y.z") == "Authorization: Bearer [secret]"


def test_half_a_secret_at_the_end_of_a_long_line_is_not_shown(tmp_path):
    log = tmp_path / "log"
    for before in range(280, 301):
        log.write_text("x" * before + "the-whole-secret\nlast\n")
        assert "the-" not in logs.explain("It died.", log, logs.redactor(["--api-key", "the-whole-secret"], {}))


def test_half_a_key_where_the_read_part_of_a_long_log_begins_is_not_shown(tmp_path):
    log, key, rest = tmp_path / "log", "ABCDEFGHIJKLMNOP", " OSError: of a key\n"
    for kept in range(1, len(key)):
        log.write_text(key + rest + "0" * (logs.READ_BYTES - kept - len(rest) - 6) + "\nlast\n")
        shown = logs.explain("It died.", log, logs.redactor(["--api-key", key], {})).splitlines()
        assert not any("OSError" in line for line in shown) and shown[-1].strip() == "last"


def test_a_bar_that_never_ends_its_line_is_shown_as_last_drawn(tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"\rloaded {n} of 50,000" for n in range(50_000)))
    assert logs.lines(log) == ["loaded 49999 of 50,000"]


def test_a_token_is_blanked_and_a_module_is_not():
    hide = logs.redactor([], {})
    assert hide("use hf_" + "aB3" * 11 + "c now") == "use [secret] now"
    for text in (
        "srt/utils/hf_transformers/config.py",
        "'hf_overrides': {}",
        "hf_hub_download",
        "hf_quant_config.json",
    ):
        assert hide(text) == text


def test_values():
    argv = ["serve", "m", "--port", "1", "--port=2", "--other", "3", "--port"]
    assert logs.values(argv, ("--port",)) == ["1", "2"]
    assert logs.values(argv, ("serve",)) == ["m"]
    assert logs.values(["sglang", "serve", "--model-path", "m", "--host", "--port", "1"], ("serve", "--host")) == []
