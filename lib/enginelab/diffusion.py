"""How long an engine takes to paint a picture: steps of a diffusion transformer, and what stands around them.

A picture starts as noise, and every step runs the whole transformer once over all of its tokens. So a picture has no
prefill and no decode: its time is `fixed + steps * per_step`. Two measurements at one size give both numbers. What a
step costs at another size follows from the transformer's arithmetic, which is known; what the fixed part costs there
does not follow from two numbers, and `Latency.at` says which assumption it makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .workload import number, whole


@dataclass(frozen=True)
class Transformer:
    """What of a diffusion transformer decides how its work grows with the picture.

    width: numbers that stand for one token inside it (heads times their size); pixels: side of the square of pixels
    that one token stands for (16 in Qwen-Image and Flux: the VAE's 8, times patches of 2); text_tokens: of the prompt,
    which take part in every step.
    """

    width: int
    pixels: int = 16
    text_tokens: int = 0

    def __post_init__(self):
        for name, least in (("width", 1), ("pixels", 1), ("text_tokens", 0)):
            whole(name, getattr(self, name), least=least)

    def tokens(self, width: int, height: int) -> int:
        """Tokens of a picture of `width` x `height` pixels, the prompt's not counted."""
        width, height = whole("width", width, least=self.pixels), whole("height", height, least=self.pixels)
        return (width // self.pixels) * (height // self.pixels)

    def work(self, width: int, height: int) -> int:
        """Multiplications and additions of one layer in one step: 24 d² for each token and 4 d for each pair of tokens.

        A token passes four square matrices (query, key, value, output: 8 d²) and a feed-forward network four times as
        wide (16 d²); every token attends to every token (4 d a pair). Kaplan et al. 2020, table 1, without the causal
        mask, counting both what is multiplied and what is added.
        """
        n = self.tokens(width, height) + self.text_tokens
        return 24 * self.width**2 * n + 4 * self.width * n**2

    def attention_share(self, width: int, height: int) -> float:
        """The part of `work` that pairs of tokens make: it grows with the square of the number of pixels."""
        n = self.tokens(width, height) + self.text_tokens
        return 4 * self.width * n**2 / self.work(width, height)


@dataclass(frozen=True)
class Latency:
    """Seconds for one picture of `width` x `height` pixels: `fixed`, whatever the steps, and `per_step`."""

    width: int
    height: int
    fixed: float
    per_step: float

    @classmethod
    def fit(cls, width: int, height: int, measured: Mapping[int, float]) -> Latency:
        """The two numbers from exactly two measurements at this size, {steps: seconds}.

        Raises ValueError if there are not two, or the one with more steps did not take longer. A fixed part below zero,
        which only a disturbed measurement gives, becomes zero.
        """
        if len(measured) != 2:
            raise ValueError(f"two numbers take exactly two measurements, not {len(measured)}")
        (few, short), (many, long) = sorted(measured.items())
        for seconds in (short, long):
            number("seconds", seconds, above=0)
        if long <= short:
            raise ValueError(
                f"{many} steps took {long:.2f} s and {few} steps {short:.2f} s: measure again on a machine that is idle"
            )
        per_step = (long - short) / (many - few)
        return cls(width, height, max(0.0, short - few * per_step), per_step)

    def seconds(self, steps: int) -> float:
        """The time for a picture of `steps` steps, in seconds."""
        return self.fixed + steps * self.per_step

    def at(self, width: int, height: int, transformer: Transformer) -> Latency:
        """The same engine at another size: a step as its work, the fixed part as the number of pixels.

        Both are assumptions that hold better the larger the picture: they leave out what an engine spends on every step
        and every request whatever the size.
        """
        work = transformer.work(width, height) / transformer.work(self.width, self.height)
        pixels = width * height / (self.width * self.height)
        return Latency(width, height, self.fixed * pixels, self.per_step * work)
