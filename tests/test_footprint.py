"""What takes memory, against what vLLM logged when it started, and against blocks handed out one by one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.footprint import GIB, defaults, footprint, kv_bytes_per_token, weight_bytes, work_bytes
from enginelab.hardware import A100, DEEPSEEK_V3, GPUS, H100, L4, LLAMA_3_1_8B, LLAMA_3_1_70B, MODELS, QWEN3_0_6B, Model

# What the driver shows of an A100 80GB, from the logs below.
SEEN = replace(A100, memory_bytes=79.25 * GIB)


def test_weights_are_what_vllm_loads():
    # vLLM pull request 10511 (December 2024) and a public log of 0.31.0 (October 2026): 14.96 and 15.0 GiB.
    assert weight_bytes(LLAMA_3_1_8B) / GIB == pytest.approx(14.96, abs=0.01)


def test_what_is_left_is_what_vllm_logged_on_an_a100():
    # vLLM 0.31.0, Llama 3.1 8B Instruct in bfloat16, one A100 80GB, all defaults (public log, October 2026): 72.91 GiB
    # to use, 56.21 GiB and 460,496 tokens of KV cache, 3.51 sequences of 131,072.
    memory = footprint(LLAMA_3_1_8B, SEEN)
    assert memory.budget / GIB == pytest.approx(72.91, abs=0.005)
    assert int(56.21 * GIB / memory.kv_token) == pytest.approx(460_496, rel=1e-4)
    assert memory.kv_tokens == pytest.approx(460_496, rel=0.005)
    assert memory.sequences(131_072) == 3


@pytest.mark.parametrize(
    "gib, estimate",
    [
        (1.26, lambda: work_bytes(LLAMA_3_1_8B, 1, 256, 8192)),  # vLLM pull request 10511, December 2024
        (1.26, lambda: work_bytes(LLAMA_3_1_8B, 2, 256, 8192)),  # the same on two GPUs
        (1.44, lambda: work_bytes(LLAMA_3_1_8B, 1, 256, 2048)),  # the log above
        # Pull request 21489, July 2025: Gemma 3 4B on a B200.
        (9.96, lambda: work_bytes(replace(LLAMA_3_1_8B, hidden=2560, intermediate=10_240, vocabulary=262_144), 1, 1024,
                                  16_384)),
        # Issue 13061, February 2025: a 14B model on the second of two GPUs, which chose no tokens.
        (0.19, lambda: work_bytes(replace(LLAMA_3_1_8B, hidden=5120, intermediate=13_824), 2, 0, 2048)),
    ],
)  # fmt: skip
def test_the_estimate_of_the_work_is_near_what_was_logged(gib, estimate):
    assert estimate() / GIB == pytest.approx(gib, rel=0.18)


def test_heads_are_divided_among_the_gpus_and_the_latent_vector_is_not():
    # vLLM issue 21348 (July 2025): Qwen3-235B-A22B, 94 layers of 4 KV heads, on 4 GPUs: 8.11 GiB are 178,880 tokens.
    qwen = Model("Qwen3-235B-A22B", 235e9, 22e9, 94, 4, 128, "its config.json, 2025")
    assert 8.11 * GIB / kv_bytes_per_token(qwen, gpus=4) == pytest.approx(178_880, rel=0.015)
    assert kv_bytes_per_token(LLAMA_3_1_70B, gpus=16) == kv_bytes_per_token(LLAMA_3_1_70B, gpus=8)
    assert kv_bytes_per_token(DEEPSEEK_V3, gpus=8) == kv_bytes_per_token(DEEPSEEK_V3) == 61 * (512 + 64) * 2


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_one_gpu_and_16_bits_are_the_models_own_numbers(model):
    assert kv_bytes_per_token(model) == replace(model, bytes_per_kv=2).kv_bytes_per_token
    assert weight_bytes(model, 16) == pytest.approx(model.parameters * 2)
    assert weight_bytes(model, 8) > model.parameters


def test_quantized_weights_leave_the_first_and_last_layer_alone():
    # Llama 3.1 8B: two layers of 128,256 x 4,096; Qwen3 0.6B has both in one (0.44 billion others, says its card).
    assert weight_bytes(LLAMA_3_1_8B, 8) == pytest.approx(8.03e9 + 2 * 128_256 * 4096)
    assert (weight_bytes(QWEN3_0_6B, 16) - weight_bytes(QWEN3_0_6B, 8)) == pytest.approx(0.44e9, rel=0.01)


@given(
    st.sampled_from(MODELS), st.sampled_from(GPUS), st.sampled_from([1, 2, 4, 8]), st.sampled_from([16, 8, 4.5]),
    st.sampled_from([16, 8]), st.integers(1, 131_072),
)  # fmt: skip
def test_sequences_are_as_many_as_blocks_handed_out_one_by_one(model, gpu, gpus, bits, kv_bits, context):
    memory = footprint(model, gpu, gpus, bits, kv_bits)
    assert memory.kv == pytest.approx(memory.budget - memory.weights - memory.work - memory.runtime)
    free = max(0, memory.kv)
    a_block = 16 * memory.kv_token
    a_sequence = a_block * len(range(0, context, 16))
    fitted = 0
    while fitted < 50 and a_sequence <= free:
        free -= a_sequence
        fitted += 1
    assert fitted == min(50, memory.sequences(context))


def test_large_gpus_start_with_larger_settings_the_a100_excepted():
    assert [defaults(gpu) for gpu in (H100, A100, L4)] == [(1024, 8192), (256, 2048), (256, 2048)]
