"""Workloads: generators against what their distributions promise, readers against the public traces."""

import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import workload
from enginelab.workload import Request


@pytest.mark.parametrize(
    "field, value",
    [
        ("arrival", -1), ("arrival", math.nan), ("arrival", math.inf), ("arrival", "soon"), ("arrival", None),
        ("prompt_tokens", 0), ("prompt_tokens", -5), ("prompt_tokens", 1.5), ("prompt_tokens", True),
        ("output_tokens", 0), ("output_tokens", -1), ("output_tokens", "4"),
    ],
)  # fmt: skip
def test_a_request_names_what_is_wrong(field, value):
    good = {"arrival": 0.0, "prompt_tokens": 1, "output_tokens": 1}
    with pytest.raises(ValueError, match=f"^{field} must be .* not {value!r}$".replace("(", r"\(")):
        Request(**good | {field: value})


@given(rate=st.floats(0.1, 1000), count=st.integers(0, 50), seed=st.integers())
def test_arrivals_are_seeded_and_in_order(rate, count, seed):
    times = workload.poisson(rate, count, seed)
    assert times == workload.poisson(rate, count, seed) == sorted(times)
    assert len(times) == count and all(time > 0 for time in times)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gaps_have_the_mean_and_the_spread_of_their_distribution(burstiness):
    times = workload.bursty(rate=5, count=20_000, burstiness=burstiness, seed=1)
    gaps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
    assert statistics.mean(gaps) == pytest.approx(1 / 5, rel=0.05)
    # The coefficient of variation of a gamma distribution is 1 / sqrt(shape).
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1 / math.sqrt(burstiness), rel=0.05)


@given(median=st.floats(1, 1e4), sigma=st.floats(0, 1e6), longest=st.integers(1, 10_000), seed=st.integers())
def test_lengths_stay_in_bounds(median, sigma, longest, seed):
    lengths = workload.lognormal(median, sigma, count=20, seed=seed, longest=longest)
    assert len(lengths) == 20 and all(1 <= length <= longest for length in lengths)


def test_lengths_have_the_median_asked_for():
    lengths = workload.lognormal(median=200, sigma=0.8, count=20_000, seed=2, longest=100_000)
    assert statistics.median(lengths) == pytest.approx(200, rel=0.03)
    logs = [math.log(length) for length in lengths]
    assert statistics.stdev(logs) == pytest.approx(0.8, rel=0.03)


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: workload.poisson("fast", 3), "rate"),
        (lambda: workload.poisson(0, 3), "rate"),
        (lambda: workload.poisson(math.nan, 3), "rate"),
        (lambda: workload.poisson(-2, 3), "rate"),
        (lambda: workload.poisson(2, -3), "count"),
        (lambda: workload.bursty(2, 3, burstiness=0), "burstiness"),
        (lambda: workload.lognormal(0, 1, 3), "median"),
        (lambda: workload.lognormal(5, -1, 3), "sigma"),
        (lambda: workload.lognormal(5, 1, 3, longest=0), "longest"),
        (lambda: workload.build([0.0, 1.0], [5], 5), "prompt_tokens"),
        (lambda: workload.build([0.0], 5, [5, 5]), "output_tokens"),
        (lambda: workload.shared_prefix([], -1), "prefix_tokens"),
        (lambda: workload.shared_prefix([], 1, groups=0), "groups"),
    ],
)
def test_generators_name_what_is_wrong(call, named):
    with pytest.raises(ValueError, match=f"^{named} must "):
        call()


def test_build_sorts_by_arrival_and_repeats_a_single_length():
    requests = workload.build([3.0, 1.0], [30, 10], 7)
    assert requests == [Request(1.0, 10, 7), Request(3.0, 30, 7)]


@given(
    prefix=st.integers(0, 100), groups=st.integers(1, 4), block=st.integers(1, 40), seed=st.integers(0, 99),
    prompts=st.lists(st.integers(1, 90), max_size=12),
)  # fmt: skip
def test_a_shared_prefix_shares_its_full_blocks_and_nothing_else(prefix, groups, block, seed, prompts):
    plain = workload.build([0.0] * len(prompts), prompts, 1)
    requests = workload.shared_prefix(plain, prefix, groups, block, seed)
    seen = []
    for request, before in zip(requests, plain, strict=True):
        assert request.prompt_tokens == prefix + before.prompt_tokens
        assert len(request.block_ids) == request.prompt_tokens // block
        shared, own = request.block_ids[: prefix // block], request.block_ids[prefix // block :]
        assert all(id < groups * (prefix // block) for id in shared)
        seen += own
    assert len(set(seen)) == len(seen)


def test_the_azure_trace(public_data):
    requests = workload.read_azure(public_data / "azure-2023-conv.csv")
    assert len(requests) == 19_366
    assert requests[0] == Request(0.0, 374, 44)
    assert requests[1].arrival == pytest.approx(50.995169 - 46.680590)


def test_the_mooncake_trace(public_data):
    requests = workload.read_mooncake(public_data / "mooncake-conversation.jsonl")
    assert len(requests) == 12_031
    assert requests[0] == Request(0.0, 6758, 500, tuple(range(14)))
    # Every prompt is cut into blocks of 512 tokens, the last one partly filled.
    assert all(len(request.block_ids) == -(-request.prompt_tokens // 512) for request in requests)


@pytest.mark.parametrize(
    "text",
    [
        "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,many,2\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900\n",
        "a,b\n1,2\n",
    ],
)
def test_a_broken_azure_row_is_named(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=r"^t\.csv, line 2: "):
        workload.read_azure(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": "x"}, {"timestamp": -1}, {"input_length": 0}, {"output_length": None}, {"hash_ids": 3},
        {"hash_ids": [1.5]}, {"hash_ids": [-1]},
    ],
)  # fmt: skip
def test_a_broken_mooncake_row_is_named(tmp_path, change):
    good = {"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}
    (tmp_path / "t.jsonl").write_text(json.dumps(good) + "\n\n" + json.dumps(good | change) + "\n")
    with pytest.raises(ValueError, match=r"^t\.jsonl, line 3: "):
        workload.read_mooncake(tmp_path / "t.jsonl")


def test_lines_that_are_not_json_are_named(tmp_path):
    (tmp_path / "t.jsonl").write_text("[1, 2]\n")
    with pytest.raises(ValueError, match=r"^t\.jsonl, line 1: "):
        workload.read_mooncake(tmp_path / "t.jsonl")
