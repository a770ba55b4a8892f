"""Cost: what a million tokens take, from the price of an hour and the tokens of a second. (The comparing lab.)"""

from __future__ import annotations

from .workload import number

SECONDS_PER_HOUR = 3600


def per_million_tokens(price_per_hour: float, tokens_per_second: float) -> float:
    """What a million tokens cost on machines that take `price_per_hour` together and make so many tokens a second.

    In the currency of the price. Machines are paid for whether they work or not, so the tokens per second must be an
    average over all the hours that are paid for: over a busy minute it gives the least that a token can cost.

    Raises `ValueError` if the price is below 0, or no tokens are made.
    """
    price = number("price_per_hour", price_per_hour, least=0)
    return price / SECONDS_PER_HOUR / number("tokens_per_second", tokens_per_second, above=0) * 1_000_000
