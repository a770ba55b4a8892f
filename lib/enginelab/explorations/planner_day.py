"""A day of traffic: a fixed fleet, a reactive autoscaler and the SLA planner side by side. (Chapter 7.)"""

from __future__ import annotations

from ..autoscaling import Day, Load, Sla, fixed, over_a_day, planned, reactive
from ..engine_profile import Curve, Profile
from ..exploring import Bars, Choice, Exploration, Guess, Line, Lines, Number, Picture, Series
from ..forecast import seasonal
from ..planner import replicas
from ..traffic import working_day

MINUTES = 30  # of an interval: few enough intervals for a browser
INTERVALS = 24 * 60 // MINUTES
PREFILL, DECODE = 20_000, 5_000  # tokens/s of one worker within the SLA, the lesson's made-up numbers
SLA = Sla(ttft=0.5, tpot=0.040)
# Up to these speeds a worker keeps the SLA, beyond them it does not.
PROFILE = Profile(Curve((PREFILL,), (SLA.ttft,)), Curve((DECODE,), (SLA.tpot,)))


def traffic(peak: float, input_tokens: int, output_tokens: int) -> tuple[list[Load], list[Load]]:
    """Yesterday, and today with about a tenth more; today's highest interval has `peak` requests/s."""
    lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens, "intervals": INTERVALS}
    yesterday = working_day(night=6, day=40, noon=14, seed=1, **lengths)
    today = working_day(night=6.6, day=44, noon=15.4, seed=2, **lengths)
    highest = max(load.rate for load in today)
    return tuple([load._replace(rate=load.rate / highest * peak) for load in day] for day in (yesterday, today))


def explore(peak: float, input_tokens: int, output_tokens: int, startup: str, spare: float) -> Picture:
    """Three fleets through a day with `peak` requests/s at its highest; `startup` in minutes, `spare` in per cent."""
    yesterday, today = traffic(peak, input_tokens, output_tokens)
    slow, share = int(startup) // MINUTES, spare / 100
    lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    lengths |= {"prefill_tokens_per_s": PREFILL, "decode_tokens_per_s": DECODE}
    most, half = replicas(peak, **lengths), replicas(peak / 2, **lengths)
    midnight = replicas(today[0].rate / (1 - share), **lengths)
    scalers = {
        "Fixed": (most, fixed(most)),
        "Reactive": (midnight, reactive(PROFILE, SLA, target=1 - share)),
        "Planned": (midnight, planned(PROFILE, SLA, seasonal(INTERVALS), ahead=1 + slow, spare=share)),
    }
    days = {
        name: over_a_day(today, scaler, PROFILE, SLA, start, interval=60 * MINUTES, startup=slow, history=yesterday)
        for name, (start, scaler) in scalers.items()
    }
    plan, react = days["Planned"], days["Reactive"]
    words = (
        f"At {peak:g} requests/s, {input_tokens:,} tokens in and {output_tokens:,} out need {most.prefill} prefill and "
        f"{most.decode} decode workers, at half that rate {half.prefill} and {half.decode}. A fleet fixed for the peak "
        f"takes {days['Fixed'].gpu_hours:,.0f} GPU-hours over the day; the planner takes {plan.gpu_hours:,.0f} and "
        f"keeps the SLA for {plan.attained:.1%} of the requests, a reactive autoscaler takes {react.gpu_hours:,.0f} "
        f"and keeps it for {react.attained:.1%}."
    )
    hours = tuple(24 * index / INTERVALS for index in range(INTERVALS))
    charts = (
        Lines(
            f"Traffic: up to {peak:g} requests/s",
            (Line("traffic", hours, tuple(load.rate for load in today)),),
            "hour of the day",
            "requests/s",
        ),
        Lines(
            "GPUs over the day, one a worker",
            tuple(Line(name, hours, _gpus(day), stepped=True) for name, day in days.items()),
            "hour of the day",
            "GPUs",
        ),
        Bars(
            "What the day takes",
            tuple(days),
            (
                Series("while the SLA is kept", tuple(_hours(day, True) for day in days.values()), "blue"),
                Series("while it is broken", tuple(_hours(day, False) for day in days.values()), "orange"),
            ),
            "GPU-hours",
        ),
    )
    rows = tuple((name, f"{day.gpu_hours:,.0f}", f"{day.attained:.1%}", f"{len(day.met) - sum(day.met)}")
                 for name, day in days.items())  # fmt: skip
    header = ("Fleet", "GPU-hours", "Requests within the SLA", f"Intervals that broke it, of {INTERVALS}")
    return Picture(words, charts, plan.gpu_hours, header, rows)


def _gpus(day: Day) -> tuple[int, ...]:
    """Workers that serve or start, in each interval; each takes one GPU."""
    return tuple(sum(serving) + sum(starting) for serving, starting in zip(day.workers, day.starting, strict=True))


def _hours(day: Day, met: bool) -> float:
    return sum(gpus * MINUTES / 60 for gpus, kept in zip(_gpus(day), day.met, strict=True) if kept == met)


EXPLORATION = Exploration(
    "The planner over a day",
    (
        Number("peak", "Request rate at the peak", 60, 1, 200, unit="requests/s"),
        Number("input_tokens", "Input tokens", 2_000, 100, 8_000, unit="a request"),
        Number("output_tokens", "Output tokens", 500, 10, 2_000, unit="a request"),
        Choice(
            "startup",
            "A new worker serves",
            "30",
            (("0", "at once"), ("30", "after half an hour"), ("60", "after an hour"), ("90", "after 90 minutes")),
        ),
        Number("spare", "Capacity kept in hand", 15, 0, 60, unit="%"),
    ),
    explore,
    Guess("How many GPU-hours does the planner's fleet take over the day?", "GPU-hours"),
)
