"""Number formats against independent readings of the same bits, and rounding against trying every value."""

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import hardware, quantization
from enginelab.quantization import BF16, E2M1, E4M3, E5M2, FORMATS, FP16, FP32, INT4, INT8, Format, format_called

ELEMENTS = [E2M1, E4M3, E5M2, INT4, INT8]
reals = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-9)
tensors = st.lists(st.floats(-1000, 1000).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=1, max_size=70)


def test_fp16_and_e5m2_are_what_the_machine_reads_from_their_bits():
    for code in range(0x7C00):
        assert FP16.value(code) == struct.unpack("<e", struct.pack("<H", code))[0]
    # E5M2 is the upper byte of an FP16.
    assert list(E5M2.values) == [struct.unpack("<e", bytes([0, code]))[0] for code in range(0x7C)]


@given(st.integers(0, 0x7F7F))
def test_bf16_is_the_upper_half_of_an_fp32(code):
    assert BF16.value(code) == struct.unpack("<f", struct.pack("<I", code << 16))[0]


def test_e4m3_by_the_table_of_the_paper_that_defines_it():
    """Micikevicius and others, 2022, table 1: largest, smallest normal and subnormal; 127 codes but one, a NaN."""
    assert len(E4M3.values) == 127
    assert (E4M3.largest, E4M3.value(0b0001000), E4M3.value(0b0000111), E4M3.value(1)) == (
        448,
        2**-6,
        0.875 * 2**-6,
        2**-9,
    )
    assert (E5M2.largest, E5M2.value(0b0000100), E5M2.value(1)) == (57344, 2**-14, 2**-16)


def test_e2m1_by_the_table_of_the_specification():
    """OCP MX 1.0, table 5."""
    assert E2M1.values == (0, 0.5, 1, 1.5, 2, 3, 4, 6)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
@given(wanted=reals)
def test_the_nearest_value_is_found_by_trying_all(element, wanted):
    signed = [sign * value for value in element.values for sign in (1, -1)]
    found = element.nearest(wanted)
    assert found in signed
    # Exactly, since two distances may differ by less than a float's last bit.
    distance = min(abs(Fraction(value) - Fraction(wanted)) for value in signed)
    assert abs(Fraction(found) - Fraction(wanted)) == distance


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_halfway_goes_to_the_even_code(element):
    for code, (low, high) in enumerate(zip(element.values, element.values[1:], strict=False)):
        assert element.nearest((low + high) / 2) == (high if code % 2 else low)


@given(st.floats(-60000, 60000))
def test_fp16_rounds_as_numpy_does(wanted):
    assert FP16.nearest(wanted) == float(np.float16(wanted))


@given(st.floats(-1e30, 1e30))
def test_fp32_rounds_as_numpy_does(wanted):
    assert FP32.nearest(wanted) == float(np.float32(wanted))


# --- scales ---------------------------------------------------------------------------------------------------------


def test_bits_a_weight_counted_over_a_whole_matrix():
    numbers = 4096 * 4096
    counted = {
        "MXFP4": numbers * 4 + numbers // 32 * 8,
        "NVFP4": numbers * 4 + numbers // 16 * 8,
        "INT4, groups of 128": numbers * 4 + numbers // 128 * 16,
        "FP8 E4M3": numbers * 8,
        "BF16": numbers * 16,
    }
    for name, bits in counted.items():
        assert format_called(name).bits == bits / numbers


def test_mxfp4_by_the_rule_of_the_specification():
    """The scale is the largest power of two in the block's largest number, over that in the element's largest, 4."""
    draw = random.Random(3)
    for _ in range(200):
        block = [draw.gauss(0, draw.choice([1e-3, 1, 50])) for _ in range(32)]
        scale = 2.0 ** (math.floor(math.log2(max(map(abs, block)))) - 2)
        assert format_called("MXFP4").scales(block) == [scale]
        signed = [sign * value * scale for value in E2M1.values for sign in (1, -1)]
        for back, each in zip(format_called("MXFP4").rounded(block), block, strict=True):
            assert abs(back - each) == min(abs(value - each) for value in signed)


def test_nvfp4_scales_are_e4m3_times_one_number_for_the_tensor():
    draw = random.Random(4)
    tensor = [draw.gauss(0, 1) * (10 if 16 <= index < 32 else 1) for index in range(64)]
    scales = format_called("NVFP4").scales(tensor)
    whole = max(map(abs, tensor)) / (6 * 448)
    assert len(scales) == 4 and all(min(abs(scale / whole - value) for value in E4M3.values) < 1e-9 for scale in scales)
    # The block with the largest number of all has the largest scale that E4M3 can say.
    assert scales[1] == pytest.approx(448 * whole)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(numbers=tensors)
def test_what_comes_back_is_a_number_for_each_with_its_sign_and_no_larger_than_the_largest(form, numbers):
    back = form.rounded(numbers)
    assert len(back) == len(numbers)
    for old, new in zip(numbers, back, strict=True):
        assert math.isfinite(new) and old * new >= 0
    # An E4M3 scale may be rounded up by a sixteenth; with a power of two as scale, a 5 may have become a 6.
    assert max(map(abs, back)) <= max(map(abs, numbers)) * 6 / 5 + 1e-12


@given(numbers=st.lists(st.sampled_from([-6.0, -4.0, -1.5, -0.5, 0.0, 0.5, 2.0, 3.0, 6.0]), min_size=1, max_size=40))
def test_what_the_format_can_say_comes_back_unchanged(numbers):
    numbers = [*numbers, 6.0]
    assert Format("plain", E2M1, block=64, scale=FP16).rounded(numbers) == numbers
    assert format_called("MXFP4").rounded(numbers[-32:]) == numbers[-32:]


def test_smaller_blocks_keep_the_damage_of_an_outlier_local():
    draw = random.Random(1)
    weights = [draw.gauss(0, 1) for _ in range(512)]
    weights[7] = 40.0
    whole, block = Format("whole", E2M1, tensor_scale=True), Format("16", E2M1, block=16, scale=FP16)
    calm = np.array(weights[16:])
    lost = [form.error(weights, slice(16, None)) for form in (whole, block)]
    for form, found in zip((whole, block), lost, strict=True):
        off = np.array(form.rounded(weights)[16:]) - calm
        assert found == pytest.approx(np.sqrt(np.mean(off**2) / np.mean(calm**2)))
    assert lost[1] < lost[0] / 4


def test_a_tensor_of_zeros_comes_back_and_none_is_refused():
    for form in FORMATS:
        assert form.rounded([0.0] * 40) == [0.0] * 40 and form.error([0.0] * 40) == 0
        with pytest.raises(ValueError, match="empty"):
            form.rounded([])
        with pytest.raises(ValueError, match="finite"):
            form.rounded([1.0, math.nan])
    with pytest.raises(ValueError, match="there are BF16"):
        format_called("FP7")


def test_rates_of_the_data_sheets():
    """Dense, in TFLOPS: H100 and L4 FP8, T4 and A100 INT8, B200 FP8 and FP4 (the sources of `hardware`)."""
    for gpu, bits, rate in (
        (hardware.H100, 8, 1979), (hardware.L4, 8, 242.5), (hardware.T4, 8, 130), (hardware.A100, 8, 624),
        (hardware.B200, 8, 4500), (hardware.B200, 4, 9000),
    ):  # fmt: skip
        assert quantization.computing(gpu, bits).flops == pytest.approx(rate * 1e12, rel=3e-3)
    assert quantization.computing(hardware.H100, 4) == hardware.H100


def test_a_quantized_model_is_smaller_by_its_bits():
    small = quantization.quantized(hardware.LLAMA_3_1_8B, format_called("NVFP4"))
    assert small.weight_bytes == pytest.approx(8.03e9 * 4.5 / 8)
    assert small.kv_bytes_per_token == hardware.LLAMA_3_1_8B.kv_bytes_per_token
