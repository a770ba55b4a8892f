"""What GPUs send each other, against a ring that is walked and tokens that are sent one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import hardware, instances, kvcache, parallelism, roofline
from enginelab.hardware import DEEPSEEK_V3, H100, LLAMA_3_1_8B, LLAMA_3_1_70B


def ring_all_reduce(parts):
    """Numbers summed over GPUs in a ring, chunk by chunk, as NCCL does: the sums, and how many one GPU sent."""
    gpus, held = len(parts), [list(part) for part in parts]
    size = len(parts[0]) // gpus
    sent = [0] * gpus
    for round_ in range(2 * (gpus - 1)):
        reducing = round_ < gpus - 1
        moves = []
        for gpu in range(gpus):
            chunk = (gpu - round_) % gpus
            moves.append((gpu, chunk, held[gpu][chunk * size : (chunk + 1) * size]))
        for gpu, chunk, numbers in moves:
            target = (gpu + 1) % gpus
            sent[gpu] += size
            for index, value in enumerate(numbers, start=chunk * size):
                held[target][index] = held[target][index] + value if reducing else value
    return held, sent


@pytest.mark.parametrize("gpus", [2, 3, 4, 8])
def test_tensor_parallelism_sends_what_a_ring_sends(gpus):
    draw, length = random.Random(gpus), 24 * gpus
    parts = [[draw.randint(0, 99) for _ in range(length)] for _ in range(gpus)]
    held, sent = ring_all_reduce(parts)
    assert all(row == [sum(column) for column in zip(*parts, strict=True)] for row in held)
    assert set(sent) == {2 * (gpus - 1) * 24}
    exchange = parallelism.tensor(LLAMA_3_1_8B, gpus, tokens=5)
    assert exchange.messages == 64
    assert exchange.bytes == pytest.approx(64 * 5 * 4096 * 2 * sent[0] / length)


def test_pipeline_parallelism_hands_each_vector_on_once():
    assert parallelism.pipeline(LLAMA_3_1_70B, 4, tokens=10) == (3, 3 * 10 * 8192 * 2)
    assert parallelism.pipeline(LLAMA_3_1_70B, 1, tokens=10) == (0, 0)


def test_expert_parallelism_sends_what_tokens_sent_one_by_one_send():
    gpus, per_gpu, experts = 8, 4000, 256
    draw, away = random.Random(1), 0
    for _ in range(per_gpu):
        # The token lives on GPU 0, which has the first of the experts.
        away += sum(expert // (experts // gpus) != 0 for expert in draw.sample(range(experts), 8))
    counted = 2 * 58 * away * 7168 * 2
    exchange = parallelism.expert(DEEPSEEK_V3, gpus, tokens=gpus * per_gpu)
    assert exchange.messages == 116
    assert exchange.bytes == pytest.approx(counted, rel=0.02)


@given(gpus=st.integers(1, 8), batch=st.integers(1, 512), context=st.integers(0, 8000))
def test_more_gpus_never_make_the_work_longer_nor_the_exchange_shorter(gpus, batch, context):
    fewer, more = (
        parallelism.tensor_decode(LLAMA_3_1_70B, H100, n, batch, context, 450e9, 10e-6) for n in (gpus, gpus + 1)
    )
    assert more.work <= fewer.work and more.exchange >= fewer.exchange
    assert fewer.time == fewer.work + fewer.exchange


def test_one_gpu_is_the_roofline_and_sends_nothing():
    step = parallelism.tensor_decode(LLAMA_3_1_8B, H100, 1, 16, 1000, 450e9, 10e-6)
    assert step == (roofline.decode_step(LLAMA_3_1_8B, H100, 16, 1000).time, 0)
    prompt = parallelism.tensor_prefill(LLAMA_3_1_8B, H100, 1, 1000, 450e9, 10e-6)
    assert prompt == (roofline.prefill_step(LLAMA_3_1_8B, H100, 1000).time, 0)
    assert parallelism.expert(DEEPSEEK_V3, 1, 10) == (0, 0)


def test_a_stage_is_busy_as_often_as_a_timeline_of_the_pipeline_shows():
    for stages, micro in ((1, 3), (4, 1), (4, 4), (3, 9)):
        busy = {(stage, batch + stage) for stage in range(stages) for batch in range(micro)}
        ticks = max(tick for _, tick in busy) + 1
        assert parallelism.pipeline_busy(stages, micro) == pytest.approx(len(busy) / stages / ticks)


def test_kv_heads_divide_only_as_far_as_there_are_heads():
    whole = LLAMA_3_1_70B.kv_bytes_per_token
    assert [parallelism.kv_bytes_per_gpu(LLAMA_3_1_70B, n) for n in (1, 2, 8, 16)] == [
        whole, whole / 2, whole / 8, whole / 8,
    ]  # fmt: skip
    # Multi-Latent Attention has one vector for all heads: every GPU holds it.
    assert parallelism.kv_bytes_per_gpu(DEEPSEEK_V3, 8) == DEEPSEEK_V3.kv_bytes_per_token


def test_tokens_that_fit_on_one_gpu_are_those_of_the_kv_cache():
    assert parallelism.tokens_that_fit(LLAMA_3_1_8B, H100, 1) // 16 == kvcache.blocks_that_fit(LLAMA_3_1_8B, H100)
    assert parallelism.tokens_that_fit(LLAMA_3_1_70B, H100, 1) == 0


def test_what_cannot_be_split_is_said():
    with pytest.raises(ValueError, match="no experts"):
        parallelism.expert(LLAMA_3_1_8B, 8, 1)
    with pytest.raises(ValueError, match="hidden"):
        parallelism.tensor(hardware.Model("m", 1e9, 1e9, 4, 1, 64, "test"), 2, 1)
    with pytest.raises(ValueError, match="gpus"):
        parallelism.tensor(LLAMA_3_1_8B, 0, 1)
    with pytest.raises(ValueError, match="bandwidth"):
        parallelism.Exchange(1, 1.0).seconds(0, 0)


# --- instances ------------------------------------------------------------------------------------------------------


def test_mig_slices_are_never_more_than_the_gpu_has():
    for profile in instances.MIG_PROFILES:
        assert profile.compute * profile.at_most <= 7 and profile.memory * profile.at_most <= 8
        # One more would not fit.
        assert profile.compute * (profile.at_most + 1) > 7 or profile.memory * (profile.at_most + 1) > 8
        gigabytes = float(profile.name.split(".")[1].removesuffix("gb"))
        part = profile.of(H100)
        assert part.memory_bytes == gigabytes * 1e9
        assert int(profile.name[0]) == profile.compute
        assert part.bandwidth / H100.bandwidth == part.memory_bytes / H100.memory_bytes
        # A slice of compute is 16 SMs or more, and seven of them are not the whole GPU.
        assert 16 * profile.compute <= profile.sms and profile.sms * profile.at_most <= hardware.H100_SMS
        assert part.flops == pytest.approx(
            profile.sms * hardware.H100_TENSOR_OPERATIONS * hardware.H100_CLOCK, rel=1e-3
        )


def test_domains_add_up_to_the_systems_of_the_data_sheets():
    by_name = {domain.name: domain for domain in instances.DOMAINS}
    rack = by_name["GB200 NVL72"]
    assert rack.gpus * 2 * rack.inside == pytest.approx(130e12, rel=0.01)
    assert rack.memory_bytes == pytest.approx(13.4e12, rel=0.01)
    assert rack.gpus * rack.gpu.bandwidth == pytest.approx(576e12, rel=0.01)
    assert by_name["Eight B200"].memory_bytes == 1440e9 and by_name["Eight H100"].memory_bytes == 640e9
    assert all("20" in domain.source for domain in instances.DOMAINS)


def test_the_peak_of_an_h100_follows_from_its_tensor_cores():
    peak = hardware.H100_SMS * hardware.H100_CLOCK * hardware.H100_TENSOR_OPERATIONS
    assert peak == pytest.approx(H100.flops, rel=1e-3)


def test_levels_grow_and_slow_down_with_distance_and_name_their_sources():
    rates = [level.bandwidth for level in hardware.H100_LEVELS if level.bandwidth]
    assert rates == sorted(rates, reverse=True)
    rooms = [level.room for level in hardware.H100_LEVELS if level.room]
    assert rooms == sorted(rooms)
    assert all("20" in level.source for level in hardware.H100_LEVELS)
