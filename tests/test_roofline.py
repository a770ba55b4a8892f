"""The roofline bound: what must hold for any model and GPU, and the source's own figures for one of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import hardware, roofline
from enginelab.hardware import Gpu, Model

sizes = st.floats(1e6, 1e12)
MODELS = st.builds(
    lambda p, layers, heads: Model("m", p, p, layers, heads, 64, "test"),
    sizes, st.integers(1, 100), st.integers(1, 64),
)  # fmt: skip
GPUS = st.builds(lambda b, f: Gpu("g", 80e9, b, f, "test", 9.0, "test"), st.floats(1e10, 1e13), st.floats(1e12, 1e16))


@given(model=MODELS, gpu=GPUS, batch=st.integers(1, 4096), context=st.integers(0, 10_000))
def test_a_bigger_batch_never_makes_fewer_tokens_per_second(model, gpu, batch, context):
    one, more = (roofline.decode_step(model, gpu, b, context) for b in (batch, batch + 1))
    assert more.time >= one.time
    assert more.tokens_per_second >= one.tokens_per_second * (1 - 1e-9)


@given(model=MODELS, gpu=GPUS, context=st.integers(0, 10_000))
def test_the_critical_batch_divides_memory_bound_from_compute_bound(model, gpu, context):
    critical = roofline.critical_batch(model, gpu, context)
    if critical >= 2:
        below = 1_000_000 if critical > 1e6 else int(critical * 0.99)
        assert roofline.decode_step(model, gpu, below, context).bound == "memory"
    if critical < 1e12:
        assert roofline.decode_step(model, gpu, int(critical * 1.01) + 1, context).bound == "compute"


def test_one_sequence_of_an_8b_model_on_an_h100_by_hand():
    step = roofline.decode_step(hardware.LLAMA_3_1_8B, hardware.H100, batch=1)
    assert step.bytes_moved == 8.03e9 * 2
    assert step.time == pytest.approx(16.06e9 / 3.35e12)
    assert step.compute_time == pytest.approx(2 * 8.03e9 / 989e12)
    assert step.bound == "memory"


def test_a_prompt_is_prefilled_in_one_step_that_reads_the_weights_once():
    one = roofline.decode_step(hardware.LLAMA_3_1_8B, hardware.H100, batch=1)
    prompt = roofline.prefill_step(hardware.LLAMA_3_1_8B, hardware.H100, prompt=2000)
    assert prompt.bytes_moved == one.bytes_moved
    assert prompt.operations == pytest.approx(2000 * one.operations)
    assert prompt.bound == "compute"


def test_kv_cache_of_llama_8b_is_128_kib_a_token():
    assert hardware.LLAMA_3_1_8B.kv_bytes_per_token == 128 * 1024


@given(gpu=GPUS, tokens=st.integers(1, 8192), inputs=st.integers(1, 20_000), outputs=st.integers(1, 20_000))
def test_a_product_counts_each_number_once_and_is_bound_by_its_intensity(gpu, tokens, inputs, outputs):
    step = roofline.product(gpu, tokens, inputs, outputs)
    assert step.bytes_moved == 2 * inputs * outputs + 2 * tokens * inputs + 2 * tokens * outputs
    assert step.operations == tokens * outputs * (inputs + inputs)
    assert step.intensity < tokens + 1e-9
    assert step.operations / step.time == pytest.approx(roofline.attainable(gpu, step.intensity))
    if abs(step.intensity / roofline.balance(gpu) - 1) > 1e-6:
        assert step.bound == ("compute" if step.intensity > roofline.balance(gpu) else "memory")


@pytest.mark.parametrize("batch", [0, -1, 1.5, None, "4"])
def test_a_batch_is_a_whole_number(batch):
    with pytest.raises(ValueError, match="^batch must be a whole number"):
        roofline.decode_step(hardware.LLAMA_3_1_8B, hardware.H100, batch)


def test_every_constant_has_a_source():
    constants = [c for c in vars(hardware).values() if isinstance(c, (Gpu, Model))]
    assert len(constants) >= 8
    for constant in constants:
        assert any(year in constant.source for year in ("2019", "202")), constant.name
