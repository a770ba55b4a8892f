"""Load forecasts: what comes next, from what came. (Chapter 7.)

A forecast is a function of the history (one value an interval, the latest last) and of how many intervals ahead. Dynamo
1.6 offers a constant, ARIMA, Prophet and a Kalman filter. Of these only the constant is here: the others need packages
that are larger than this course. A daily pattern is caught by `seasonal`, in a few lines that can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from .workload import number, whole

Forecast = Callable[[Sequence[float], int], float]


def constant(history: Sequence[float], ahead: int = 1) -> float:
    """The last value again; 0 before there is one."""
    return _checked(history, ahead)[-1] if history else 0.0


def moving_average(window: int) -> Forecast:
    """The mean of the last `window` values: steadier than the last one, and later."""
    window = whole("window", window, least=1)

    def forecast(history: Sequence[float], ahead: int = 1) -> float:
        return fmean(_checked(history, ahead)[-window:]) if history else 0.0

    return forecast


def seasonal(period: int, window: int = 3) -> Forecast:
    """The value one period ago, times how the last `window` values compare with theirs one period ago.

    `period` in intervals, as 288 for a day of five minutes. Until a period and a window have been seen, the last value.
    """
    period, window = whole("period", period, least=1), whole("window", window, least=1)

    def forecast(history: Sequence[float], ahead: int = 1) -> float:
        values = _checked(history, ahead)
        if ahead > period:
            raise ValueError(f"ahead must be at most the period of {period} intervals, not {ahead}")
        if len(values) < period + window:
            return constant(values, ahead)
        before = fmean(values[-period - window : -period])
        level = fmean(values[-window:]) / before if before else 1.0
        return values[len(values) - 1 + ahead - period] * level

    return forecast


def _checked(history: Sequence[float], ahead: int) -> Sequence[float]:
    whole("ahead", ahead, least=1)
    if history:
        number("the last value of history", history[-1], least=0)
    return history
