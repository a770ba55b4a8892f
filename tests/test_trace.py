"""Traces: definitions checked by hand and against numpy; measured runs read back."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import trace
from enginelab.trace import Trace
from enginelab.workload import Request

RUN = Trace(
    (Request(0.0, 10, 3), Request(1.0, 10, 1)),
    first_token=(0.5, 4.0),
    last_token=(2.5, 4.0),
    token_times=((0.5, 1.0, 2.5), (4.0,)),
)


def test_metrics_follow_their_definitions():
    assert RUN.ttft == (0.5, 3.0)
    assert RUN.e2e == (2.5, 3.0)
    assert RUN.tpot[0] == 1.0 and math.isnan(RUN.tpot[1])
    assert RUN.itl == (0.5, 1.5)
    assert RUN.duration == 4.0
    assert RUN.output_throughput == 1.0
    assert RUN.request_throughput == 0.5


def test_goodput_counts_requests_within_every_limit():
    assert RUN.goodput() == RUN.request_throughput
    assert RUN.goodput(ttft=1.0) == 0.25
    # A single token has no TPOT to miss.
    assert RUN.goodput(tpot=0.9) == 0.25
    assert RUN.goodput(e2e=2.0) == 0.0


def test_the_first_requests_keep_their_times():
    first = RUN.first(1)
    assert first.requests == RUN.requests[:1] and first.e2e == RUN.e2e[:1] and first.token_times == RUN.token_times[:1]
    assert first.source == RUN.source


def test_summary_puts_the_metrics_together():
    summary = RUN.summary()
    assert summary.requests == 2 and summary.duration == 4.0
    assert summary.ttft.mean == 1.75 and summary.tpot.p99 == 1.0


def test_a_run_without_requests_has_no_throughput():
    empty = Trace((), (), ())
    assert empty.duration == 0.0 and math.isnan(empty.request_throughput) and math.isnan(empty.summary().e2e.p50)


def test_inter_token_latency_needs_the_tokens():
    with pytest.raises(ValueError, match="no token_times"):
        _ = Trace((Request(0.0, 1, 2),), (1.0,), (2.0,)).itl


@pytest.mark.parametrize(
    "columns, named",
    [
        ({"first_token": (1.0,)}, "first_token must have one entry per request"),
        ({"scheduled": ()}, "scheduled must have one entry per request"),
        ({"first_token": (-0.5, 4.0)}, "request 0 must arrive"),
        ({"last_token": (2.5, 3.0)}, "request 1 must arrive"),
        ({"last_token": (math.nan, 4.0)}, "request 0 must arrive"),
        ({"last_token": (math.inf, 4.0)}, "request 0 must arrive"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(columns, named):
    good = {"requests": RUN.requests, "first_token": RUN.first_token, "last_token": RUN.last_token}
    with pytest.raises(ValueError, match=f"^{named}"):
        Trace(**good | columns)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30), st.floats(0, 100))
def test_percentiles_are_numpys(values, q):
    assert trace.percentile(values, q) == pytest.approx(float(numpy.percentile(values, q)), rel=1e-9, abs=1e-6)


def test_percentiles_leave_out_what_is_not_known():
    assert trace.percentile([math.nan, 1.0, 3.0], 50) == 2.0
    assert math.isnan(trace.percentile([math.nan], 50))
    for q in (-1, 101, math.nan, "half"):
        with pytest.raises(ValueError, match="^q must"):
            trace.percentile([1.0], q)


class TestMape:
    def test_by_hand(self):
        predicted = Trace(RUN.requests, (1.0, 4.0), (2.0, 7.0))
        # e2e: 2.5 predicted 2.0 and 3.0 predicted 6.0 -> (0.2 + 1.0) / 2
        assert trace.mape(RUN, predicted, "e2e") == pytest.approx(0.6)
        # tpot: only the first request has one, 1.0 predicted 0.5.
        assert trace.mape(RUN, predicted, "tpot") == pytest.approx(0.5)
        assert trace.mape(RUN, RUN, "ttft") == 0.0

    def test_what_cannot_be_compared_is_named(self):
        with pytest.raises(ValueError, match="^metric must be"):
            trace.mape(RUN, RUN, "speed")
        with pytest.raises(ValueError, match="measured has 2, predicted 1"):
            trace.mape(RUN, RUN.first(1), "e2e")
        with pytest.raises(ValueError, match="nothing to compare"):
            trace.mape(Trace((), (), ()), Trace((), (), ()))


def test_measured_runs(public_data):
    run = trace.read_run(public_data / "vllm-runs" / "rtx4090-llama-3.1-8b.csv")
    assert len(run.requests) == 300
    assert run.requests[0] == Request(0.0, 2358, 531)
    assert run.ttft[0] == pytest.approx(0.689435)
    assert run.e2e[1] == pytest.approx(25.619194 - 0.386902)
    assert run.first(150).requests == run.requests[:150]
    assert all(a.arrival <= b.arrival for a, b in zip(run.requests, run.requests[1:], strict=False))


@pytest.mark.parametrize("row", ["a,1,2,0,0,0", "a,x,2,0,0,0,0", "a,1,0,0,0,0,0", "a,1,2,nan,0,0,0"])
def test_a_broken_row_is_named(tmp_path, row):
    header = "request_id,input_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s"
    (tmp_path / "run.csv").write_text(f"{header}\n{row}\n")
    with pytest.raises(ValueError, match=r"^run\.csv, line 2: "):
        trace.read_run(tmp_path / "run.csv")
