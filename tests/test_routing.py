"""Routing: the lesson's saved prefill."""

import pytest

from enginelab import routing


def test_the_lesson():
    assert routing.prefill_saved(prompt_tokens=1200, cached_tokens=1000) == 1000 / 1200
    assert round(100 * routing.prefill_saved(1200, 1000)) == 83


def test_nothing_cached_saves_nothing_and_everything_saves_all():
    assert routing.prefill_saved(1200, 0) == 0.0
    assert routing.prefill_saved(1200, 1200) == 1.0


@pytest.mark.parametrize(
    "prompt, cached, named",
    [
        (0, 0, "prompt_tokens"),
        (-1, 0, "prompt_tokens"),
        (5, -1, "cached_tokens"),
        (5, 6, "cached_tokens"),
        (5, "1", "cached_tokens"),
    ],
)  # fmt: skip
def test_bad_input_is_named(prompt, cached, named):
    with pytest.raises(ValueError, match=f"^{named} must"):
        routing.prefill_saved(prompt, cached)
