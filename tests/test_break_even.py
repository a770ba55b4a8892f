"""The rate that a fleet keeps up, and from where a better router saves workers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.autoscaling import Sla
from enginelab.break_even import Prompts, kept, most_rate, worth_from
from enginelab.routing import simulate
from enginelab.scheduler import Config
from enginelab.trace import Trace
from enginelab.workload import Request

SLA = Sla(ttft=1.0, tpot=0.06)


def run(ttfts, tpots):
    """A run of two-token answers with these latencies."""
    requests = [Request(0.0, 10, 2) for _ in ttfts]
    return Trace(requests, ttfts, [a + b for a, b in zip(ttfts, tpots, strict=True)])


def test_a_promise_counts_requests_that_met_both_limits():
    nine_in_time = run([0.5] * 9 + [2.0], [0.05] * 10)
    assert kept(nine_in_time, SLA) and not kept(nine_in_time, SLA, share=0.91)
    assert not kept(run([0.5] * 10, [0.05] * 8 + [0.07] * 2), SLA)
    assert not kept(run([2.0, 0.5], [0.05, 0.07]), SLA, share=0.5)
    assert kept(Trace([Request(0.0, 10, 1)], [0.5], [0.5]), SLA)


@pytest.mark.parametrize("share", [0, 1.1])
def test_a_promise_to_nobody_is_an_error(share):
    with pytest.raises(ValueError, match="share"):
        kept(run([1], [1]), SLA, share)


@pytest.mark.parametrize("policy", ["round_robin", "kv_aware"])
def test_the_rate_is_where_a_plain_search_finds_it(policy):
    prompts, fleet = Prompts(0.75, prompt_tokens=2000, prefixes=16, seconds=5), [Config(num_blocks=2000)] * 2
    rates = range(4, 30, 2)
    fits = [rate for rate in rates if kept(simulate(prompts.at(rate), fleet, policy), SLA)]
    assert 4 in fits and 28 not in fits
    assert most_rate(prompts.at, rates, fleet, policy, SLA) == max(fits)
    assert most_rate(prompts.at, [500.0, 600.0], fleet, policy, SLA) == 0


def test_rates_must_increase():
    with pytest.raises(ValueError, match="2 comes after 3"):
        most_rate(Prompts(0).at, [1, 3, 2], [Config()], "round_robin", SLA)


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0.1, 10))
def test_at_the_break_even_the_fleets_differ_by_the_price(plain, aware, price):
    rate = worth_from(plain, aware, price)
    assert math.isinf(rate) == (1 / aware >= 1 / plain)
    if math.isfinite(rate):
        assert rate * (1 / plain - 1 / aware) == pytest.approx(price)


@given(st.floats(0, 1), st.integers(1, 500), st.integers(1, 9))
def test_prompts_share_what_they_should(share, tokens, prefixes):
    requests = Prompts(share, tokens, prefixes, seconds=4).at(10)
    assert len(requests) == 40 and {request.prompt_tokens for request in requests} == {tokens}
    common = min(tokens - 1, round(share * tokens)) // 16
    heads = {request.block_ids[:common] for request in requests}
    assert len(heads) <= prefixes
    others = [block for request in requests for block in request.block_ids[common:]]
    assert len(others) == len(set(others)) == 40 * (tokens // 16 - common)
    assert 1 <= min(r.output_tokens for r in requests) and max(r.output_tokens for r in requests) <= 800


@pytest.mark.parametrize("name, value", [("share", 1.5), ("prefixes", 0), ("seconds", 0), ("output_tokens", 1.5)])
def test_impossible_prompts_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        Prompts(**({"share": 0.5} | {name: value}))
