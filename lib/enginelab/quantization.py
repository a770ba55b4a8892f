"""Number formats: which values a few bits can say, and what is lost when weights are rounded to them. (Primer 3.)

A format stores each number in a small *element* (4, 8 or 16 bits). What is too coarse alone gets a *scale*, one for a
whole tensor or for each block of neighbours: value = scale · element. Sources:

FP8      Micikevicius and others, "FP8 Formats for Deep Learning", 2022: E4M3 has no infinities and one NaN a sign
MXFP4    OCP Microscaling Formats (MX) Specification 1.0, September 2023: blocks of 32, a power of two as scale
NVFP4    NVIDIA, "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference", 2025: blocks of 16, an E4M3
         number as scale, and one FP32 scale for the tensor
INT4     groups of 128 with an FP16 scale, the usual choice of AWQ (Lin and others, 2023) and GPTQ checkpoints; the
         zero point that some of them store with it is left out
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .hardware import Gpu, Model
from .workload import number


@dataclass(frozen=True)
class Float:
    """A floating-point element of a sign, `exponent_bits` and `mantissa_bits`.

    `reserved` is how many of its largest codes stand for infinity or not-a-number: IEEE formats give up all codes with
    the largest exponent.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    reserved: int = 0

    @property
    def bits(self) -> int:
        """Bits of one number, its sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """What is taken from the stored exponent."""
        return 2 ** (self.exponent_bits - 1) - 1

    def value(self, code: int) -> float:
        """The number that a code without its sign stands for; codes from 0, in order of their values."""
        exponent, mantissa = divmod(code, 2**self.mantissa_bits)
        # Exponent 0 is for the numbers next to zero, which have no leading one.
        lead, power = (1, exponent - self.bias) if exponent else (0, 1 - self.bias)
        return math.ldexp(lead + mantissa / 2**self.mantissa_bits, power)

    @property
    def values(self) -> tuple[float, ...]:
        """All numbers from zero up that the element can say."""
        return tuple(map(self.value, range(2 ** (self.bits - 1) - self.reserved)))

    @property
    def largest(self) -> float:
        """The largest number that the element can say."""
        return self.value(2 ** (self.bits - 1) - self.reserved - 1)

    def nearest(self, wanted: float) -> float:
        """The nearest number that the element can say, the one with an even code if two are; at most `largest`."""
        _, power = math.frexp(wanted)
        step = math.ldexp(1, max(power - 1, 1 - self.bias) - self.mantissa_bits)
        return math.copysign(min(abs(round(wanted / step) * step), self.largest), wanted)


@dataclass(frozen=True)
class Integer:
    """A whole number of `bits` bits, its sign included; as many below zero as above."""

    name: str
    bits: int

    @property
    def values(self) -> tuple[float, ...]:
        """All numbers from zero up that the element can say."""
        return tuple(map(float, range(2 ** (self.bits - 1))))

    @property
    def largest(self) -> float:
        """The largest number that the element can say."""
        return 2.0 ** (self.bits - 1) - 1

    def nearest(self, wanted: float) -> float:
        """The nearest number that the element can say, the even one if two are; at most `largest`."""
        return math.copysign(min(abs(round(wanted)), self.largest), wanted)


FP32 = Float("FP32", 8, 23, reserved=2**23)
FP16 = Float("FP16", 5, 10, reserved=2**10)
BF16 = Float("BF16", 8, 7, reserved=2**7)
E5M2 = Float("E5M2", 5, 2, reserved=2**2)
E4M3 = Float("E4M3", 4, 3, reserved=1)
E2M1 = Float("E2M1", 2, 1)
INT8 = Integer("INT8", 8)
INT4 = Integer("INT4", 4)

POWER_OF_TWO_BITS = 8  # E8M0: an exponent and nothing else (OCP MX 1.0)


@dataclass(frozen=True)
class Format:
    """How a tensor is stored.

    element      what each number becomes
    block        neighbours that share a scale; 0 for one scale over the whole tensor, or none
    scale        what a block's scale is stored as; None for a power of two in 8 bits, where there are blocks
    tensor_scale the tensor has an FP32 scale; its bits are not counted, since tensors have millions of numbers
    """

    name: str
    element: Float | Integer
    block: int = 0
    scale: Float | None = None
    tensor_scale: bool = False

    @property
    def bits(self) -> float:
        """Bits a number, its share of the block's scale included."""
        scale_bits = self.scale.bits if self.scale else POWER_OF_TWO_BITS
        return self.element.bits + (scale_bits / self.block if self.block else 0)

    def scales(self, numbers: Sequence[float]) -> list[float]:
        """The scale of each block of `numbers`, one after the other; a single one if the format has no blocks.

        A scale brings the block's largest number to the element's largest. A power of two cannot do so exactly: by
        OCP MX 1.0 it is rounded down, and what then lies above the element's largest is cut to it.
        """
        numbers = [number("numbers", each) for each in numbers]
        if not numbers:
            raise ValueError("numbers must not be empty")
        if not self.block:
            return [_largest(numbers) / self.element.largest or 1.0] if self.tensor_scale else [1.0]
        whole = _largest(numbers) / (self.element.largest * self.scale.largest) if self.tensor_scale else 1.0
        return [self._scale(part, whole or 1.0) for part in _parts(numbers, self.block)]

    def _scale(self, part: Sequence[float], whole: float) -> float:
        largest = _largest(part)
        if not largest:
            return 1.0
        if self.scale is None:
            return math.ldexp(1, math.frexp(largest)[1] - math.frexp(self.element.largest)[1])
        # The smallest scale there is, rather than zero, where a block is far below the largest.
        return whole * (self.scale.nearest(largest / self.element.largest / whole) or self.scale.value(1))

    def elements(self, numbers: Sequence[float]) -> list[float]:
        """What each number is stored as, before its scale."""
        size = self.block or len(numbers)
        return [
            self.element.nearest(each / scale)
            for part, scale in zip(_parts(numbers, size), self.scales(numbers), strict=True)
            for each in part
        ]

    def rounded(self, numbers: Sequence[float]) -> list[float]:
        """The numbers that come back: each element times its scale."""
        size, scales = self.block or len(numbers), self.scales(numbers)
        return [element * scales[index // size] for index, element in enumerate(self.elements(numbers))]

    def error(self, numbers: Sequence[float], among: slice = slice(None)) -> float:
        """Root of the mean squared error of `rounded`, as a fraction of the numbers' own root mean square.

        With `among` only those of the numbers count, though all are stored.
        """
        wanted, found = numbers[among], self.rounded(numbers)[among]
        lost = sum((back - each) ** 2 for back, each in zip(found, wanted, strict=True))
        return math.sqrt(lost / (sum(each**2 for each in wanted) or 1.0))


def _largest(numbers: Sequence[float]) -> float:
    return max(map(abs, numbers))


def _parts(numbers: Sequence[float], size: int) -> list[Sequence[float]]:
    return [numbers[begin : begin + size] for begin in range(0, len(numbers), size)]


FORMATS = (
    Format("BF16", BF16),
    Format("FP16", FP16),
    Format("FP8 E5M2", E5M2, tensor_scale=True),
    Format("FP8 E4M3", E4M3, tensor_scale=True),
    Format("INT8", INT8, tensor_scale=True),
    Format("INT4, groups of 128", INT4, block=128, scale=FP16),
    Format("MXFP4", E2M1, block=32),
    Format("NVFP4", E2M1, block=16, scale=E4M3, tensor_scale=True),
)


def format_called(name: str) -> Format:
    """The format of that name. Raises `ValueError`, with the names that there are."""
    for each in FORMATS:
        if each.name == name:
            return each
    raise ValueError(f"no format is called {name!r}; there are {', '.join(each.name for each in FORMATS)}")


def quantized(model: Model, form: Format) -> Model:
    """`model` with all weights in `form`. Real checkpoints leave a few layers, such as the embedding, in 16 bits."""
    return replace(model, bytes_per_weight=form.bits / 8)


NATIVE_BITS = {"Turing": 8, "Ampere": 8, "Ada": 8, "Hopper": 8, "Blackwell": 4}
"""Generation -> fewest bits that its tensor cores multiply as engines use them: INT8, from Ada FP8, on Blackwell FP4.

NVIDIA's data sheets of these GPUs, 2019 to 2025. Each halving of the bits doubles the operations/s. The INT4 of Turing
to Ada needs activations of 4-bit whole numbers as well, which the checkpoints of `FORMATS` do not have.
"""


def computing(gpu: Gpu, bits: int) -> Gpu:
    """`gpu` at its rate for operations on `bits`-bit numbers, weights *and* activations; 16 bits where it has none."""
    if bits >= 16 or bits < NATIVE_BITS.get(gpu.generation, 16):
        return gpu
    return replace(gpu, flops=gpu.flops * 16 / bits)
