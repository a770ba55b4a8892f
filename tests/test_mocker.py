"""The mocker's formulas as numbers; tests/engines/test_dynamo.py asks the real one."""

import pytest

from enginelab import mocker, scheduler
from enginelab.workload import Request


def test_prefill_grows_faster_than_the_prompt_and_costs_something_at_once():
    assert mocker.prefill(0) == 0
    assert mocker.prefill(1) > 0.0165
    assert mocker.prefill(2000) - mocker.prefill(1000) > mocker.prefill(1000) - mocker.prefill(1)


def test_decode_takes_longer_the_fuller_the_cache():
    times = [mocker.decode(kv, 1000) for kv in range(0, 1001, 100)]
    assert times == sorted(times) and mocker.decode(2000, 1000) == times[-1]


def test_the_step_time_gives_the_mockers_steps_where_it_says_so():
    config = scheduler.Config(step_time=mocker.step_time(208, 65536), enable_prefix_caching=True)
    run = scheduler.simulate([Request(0, 208, 11)], config, token_times=True)
    assert run.ttft[0] == pytest.approx(mocker.prefill(208) + mocker.decode(0, 65536), rel=1e-6)
    for done, gap in enumerate(run.itl, start=1):
        assert gap == pytest.approx(mocker.decode(208 + done, 65536), rel=1e-3)


IMPOSSIBLE = [lambda: mocker.prefill(-1), lambda: mocker.decode(1, 0), lambda: mocker.step_time(0, 1)]


@pytest.mark.parametrize("call", IMPOSSIBLE)
def test_impossible_numbers_are_named(call):
    with pytest.raises(ValueError, match="must be a whole number"):
        call()
