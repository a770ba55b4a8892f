"""Six requests on four slots: static beside continuous batching. (Chapter 2.)"""

from __future__ import annotations

from ..batching import Schedule, continuous, static
from ..exploring import Complaint, Exploration, Guess, Number, Numbers, Picture, Span, Spans

LONGEST = 60
KEY = {"blue": "started on arrival", "orange": "had to wait", "idle": "idle"}


def explore(lengths: tuple[int, ...], slots: int, arrivals: tuple[int, ...]) -> Picture:
    """Both schedules of `lengths` (tokens) on `slots` slots; `arrivals` in steps, none for all at the start."""
    if arrivals and len(arrivals) != len(lengths):
        raise Complaint(
            "arrivals",
            f"Arrivals: {len(lengths)} requests need {len(lengths)} arrivals, and here are {len(arrivals)}; "
            "leave the field empty if all are there from the start.",
        )
    waiting = static(lengths, slots, arrivals or None)
    refilling = continuous(lengths, slots, arrivals or None)
    gain = waiting.steps / refilling.steps
    words = (
        f"Static batching needs {waiting.steps} steps and uses {waiting.utilization:.0%} of its slot-steps; "
        f"continuous batching needs {refilling.steps} and uses {refilling.utilization:.0%}"
    )
    words += f": {gain:.2f} times the throughput." if gain > 1 else ". Here it gains no step."
    charts = (_timeline("Static", waiting, waiting.steps), _timeline("Continuous", refilling, waiting.steps))
    return Picture(words, charts, answer=refilling.steps)


def _timeline(name: str, schedule: Schedule, end: int) -> Spans:
    spans = [Span(slot - 1, first - 1, last, look="idle") for slot, first, last in schedule.idle]
    for index, (run, arrival) in enumerate(zip(schedule.runs, schedule.arrivals, strict=True), start=1):
        waited = run.first_step - 1 > arrival
        spans.append(Span(run.slot - 1, run.first_step - 1, run.last_step, f"R{index}", "orange" if waited else "blue"))
    return Spans(
        f"{name}: {schedule.steps} steps, {schedule.utilization:.0%} of slot-steps useful",
        tuple(f"slot {slot}" for slot in range(1, schedule.slots + 1)),
        tuple(spans),
        "steps done",
        end,
        KEY,
    )


EXPLORATION = Exploration(
    "Static and continuous batching",
    (
        Numbers("lengths", "Output lengths", (2, 8, 3, 5, 3, 4), 1, LONGEST, at_most=24, unit="tokens"),
        Number("slots", "Slots", 4, 1, 12),
        Numbers("arrivals", "Arrivals", (), 0, LONGEST, at_most=24, unit="steps", optional=True),
    ),
    explore,
    Guess("After how many steps is the last request answered under continuous batching?", "steps"),
)
