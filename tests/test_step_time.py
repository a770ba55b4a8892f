"""The time of one step, and its fit to measured runs."""

import json
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from enginelab import roofline, routing, trace, workload
from enginelab.hardware import H100, LLAMA_3_1_8B
from enginelab.scheduler import Config, StepTime, simulate
from enginelab.step_time import PICOSECONDS, clock


def test_a_step_by_hand():
    step = StepTime(1.0, 0.5, 0.25, 0.125)
    assert step.seconds(prefill_tokens=3, sequences=4, kv_tokens=8) == 1 + 1.5 + 1 + 1
    assert replace(step, compute_per_token=2.0).seconds(prefill_tokens=3, sequences=4) == 14


def test_roofline_agrees_with_the_roofline_module():
    step = StepTime.roofline(LLAMA_3_1_8B, H100)
    for batch, context in ((1, 0), (64, 1000), (256, 500), (512, 10)):
        bound = roofline.decode_step(LLAMA_3_1_8B, H100, batch, context).time
        assert step.seconds(sequences=batch, kv_tokens=batch * context) == pytest.approx(bound, rel=1e-6)
    bound = roofline.prefill_step(LLAMA_3_1_8B, H100, 2048).time
    assert StepTime.roofline(LLAMA_3_1_8B, H100, 0.5).seconds(prefill_tokens=2048) == pytest.approx(2 * bound, rel=1e-6)


def test_the_clock_never_starts_before_an_arrival():
    draw = random.Random(0)
    for seconds in [0.0, 0.1, 1e-13, 1e7 / 3] + [draw.uniform(0, 10 ** draw.randint(-6, 7)) for _ in range(2000)]:
        ticks = clock(seconds)
        assert ticks / PICOSECONDS >= seconds
        late = Fraction(ticks, PICOSECONDS) - Fraction(seconds)
        assert abs(late) <= Fraction(1, PICOSECONDS) + Fraction(seconds) / 2**52


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fixed", 0),
        ("per_prefill_token", -1e-9),
        ("per_kv_token", math.nan),
        ("compute_per_token", "1"),
        ("prefilling", -1),
    ],
)
def test_an_impossible_coefficient_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        StepTime(**{name: value})
    with pytest.raises(ValueError, match="efficiency"):
        StepTime.roofline(LLAMA_3_1_8B, H100, 1.5)


def half_error(run, predicted, metric="e2e"):
    """Mean absolute percentage error over the second half of the requests."""
    pairs = list(zip(getattr(run, metric), getattr(predicted, metric), strict=True))[len(run.requests) // 2 :]
    errors = [abs(p - m) / m for m, p in pairs if m > 0]
    return sum(errors) / len(errors)


def measured(folder, name):
    """A measured run, and the configuration of its engine."""
    run = trace.read_run(folder / "vllm-runs" / f"{name}.csv")
    settings = json.loads((folder / "vllm-runs" / f"{name}.json").read_text())
    blocks = settings["num_gpu_blocks"]
    return run, Config(
        settings["max_num_seqs"],
        settings["max_num_batched_tokens"],
        blocks and blocks - 1,
        settings["block_size"] or 16,
        bool(settings["enable_prefix_caching"]),
    )


def test_the_defaults_are_what_the_fit_finds(public_data):
    default, fitted = StepTime(), StepTime.fit(*measured(public_data, "rtxpro6000-llama-3.1-8b"))
    assert default.per_prefill_token == pytest.approx(fitted.per_prefill_token, rel=0.03)
    for sequences in (1, 8, 32, 64, 128):
        for context in (500, 1000, 2000):
            step = {"sequences": sequences, "kv_tokens": sequences * context}
            assert default.seconds(**step) == pytest.approx(fitted.seconds(**step), rel=0.03), step


@pytest.mark.parametrize(
    ("name", "most"), [("rtxpro6000-llama-3.1-8b", 0.015), ("rtx4090-llama-3.1-8b", 0.03)], ids=["roomy", "preempting"]
)
def test_fitted_on_the_first_half_it_predicts_the_second(public_data, name, most):
    run, config = measured(public_data, name)
    fitted = StepTime.fit(run.first(len(run.requests) // 2), config)
    predicted = simulate(run.requests, replace(config, step_time=fitted))
    assert half_error(run, predicted) <= most


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("rate", [2.0, 8.0])
def test_a_fit_finds_an_engine_again(workers, rate):
    """A run of the model itself, with noise on its times, at light and at heavy load, by one engine and by two."""
    draw = random.Random(f"{workers} {rate}")
    count = 200
    prompts, outputs = (workload.lognormal(m, 0.8, count, seed=s, longest=1500) for m, s in ((500, 1), (150, 2)))
    requests = workload.build(workload.poisson(rate * workers, count), prompts, outputs)
    true = Config(max_num_seqs=32, step_time=StepTime(0.02, 1e-4, 2e-4, 2e-7))
    exact = routing.simulate(requests, [true] * workers)
    first, last = [], []
    for request, ttft, e2e in zip(requests, exact.ttft, exact.e2e, strict=True):
        first.append(request.arrival + ttft * draw.gauss(1, 0.01))
        last.append(first[-1] + (e2e - ttft) * draw.gauss(1, 0.01))
    run = trace.Trace(tuple(requests), first, last, exact.scheduled)
    fitted = StepTime.fit(run.first(count // 2), replace(true, step_time=StepTime()), workers)
    assert half_error(run, routing.simulate(requests, [replace(true, step_time=fitted)] * workers)) < 0.02


def test_a_fit_needs_something_to_fit():
    requests = workload.build([0.0] * 5, 100, 10)
    with pytest.raises(ValueError, match="at least 10 requests"):
        StepTime.fit(simulate(requests, Config()), Config())
    with pytest.raises(ValueError, match="workers"):
        StepTime.fit(simulate(requests, Config()), Config(), workers=0)
