"""Which engine, and whether Dynamo above it: the decision tree explains its path. (Chapter 6.)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..choosing import DYNAMO, TREE, Condition, dynamo, engine, questions
from ..exploring import Choice, Exploration, Picture, Span, Spans


@dataclass(frozen=True)
class Option:
    """One answer that a reader can give: what it says, and the facts that follow, keys of `choosing`'s conditions."""

    words: str
    facts: tuple[str, ...] = ()


ANSWERS: Mapping[str, Mapping[str, Option]] = {
    "gpu": {
        "hopper": Option("Hopper or newer", ("hopper_or_newer",)),
        "older": Option("older, smaller, or not NVIDIA's"),
    },
    "model": {
        "moe": Option("a large MoE, such as DeepSeek or Kimi", ("large_moe", "supported")),
        "moe-new": Option("a large MoE that came out this week", ("large_moe",)),
        "dense": Option("a dense LLM that TensorRT-LLM supports", ("supported",)),
        "dense-new": Option("a dense LLM that came out this week"),
        "omni": Option("an Omni model: several inputs and outputs"),
        "images": Option("one that makes images or video", ("image_or_video",)),
    },
    "wish": {
        "top": Option("top performance, for more engineering", ("top_performance",)),
        "quick": Option("a quick start"),
        "control": Option("control over single components", ("customization",)),
    },
    "scale": {
        "foundation": Option("many workers, heavy traffic, a foundation model",
                             ("many_gpus", "high_volume", "foundation_model")),
        "heavy": Option("many workers, heavy traffic", ("many_gpus", "high_volume")),
        "several": Option("several workers, modest traffic", ("many_gpus",)),
        "one": Option("one worker"),
    },
}  # fmt: skip
LABELS = {"gpu": "GPU", "model": "Model", "wish": "What matters most", "scale": "Scale"}
SHORT = {
    "hopper_or_newer": "Hopper+", "supported": "supported", "top_performance": "top speed",
    "large_moe": "large MoE", "image_or_video": "images", "customization": "control",
    "high_volume": "traffic", "many_gpus": "workers",
}  # fmt: skip

LOOKS = {"green": "holds", "idle": "does not hold", "paper": "not asked"}


def facts(given: Mapping[str, str]) -> set[str]:
    """What follows from the answers by control: the keys of the conditions that hold."""
    return {fact for control, value in given.items() for fact in ANSWERS[control][value].facts}


def picked(given: Mapping[str, str]) -> tuple[str, str]:
    """The engine, and "Dynamo" or "the engine alone"."""
    choice, above = _choices(facts(given))
    return choice.name, above.name


def _choices(hold: set[str]):
    asked = [condition.key for question in questions() for condition in question.conditions]
    above = {name: name in hold for name in ("high_volume", "many_gpus", "foundation_model")}
    return engine(**{key: key in hold for key in asked}), dynamo(**above)


def explore(gpu: str, model: str, wish: str, scale: str) -> Picture:
    """Where the tree leads, on which path, and which other answer would change it."""
    given = {"gpu": gpu, "model": model, "wish": wish, "scale": scale}
    hold = facts(given)
    choice, above = _choices(hold)
    with_dynamo = "with Dynamo above it" if above.name == "Dynamo" else "without Dynamo"
    words = f"{choice.name}, {with_dynamo}. {' '.join(choice.path)} {above.why}"
    first, second = questions(TREE)
    reached = len(choice.path) > 1
    groups = [
        (f"{first.yes.name}: all of", first.conditions, True),
        (f"{second.yes.name}: one of", second.conditions, reached),
        ("Dynamo: all of", DYNAMO, True),
    ]
    spans = [
        Span(row, place, place + 1, SHORT[condition.key], _look(condition, hold, asked))
        for row, (_, conditions, asked) in enumerate(groups)
        for place, condition in enumerate(conditions)
    ]
    chart = Spans(
        f"{choice.name}, {with_dynamo}",
        tuple(name for name, *_ in groups),
        tuple(spans),
        "conditions",
        max(span.end for span in spans),
        {look: meaning for look, meaning in LOOKS.items() if look in {span.look for span in spans}},
    )
    rows = tuple(
        (LABELS[control], ANSWERS[control][value].words, _otherwise(given, control)) for control, value in given.items()
    )
    return Picture(words, (chart,), header=("Question", "Your answer", "Another answer would change it to"), rows=rows)


def _look(condition: Condition, hold: set[str], asked: bool) -> str:
    if not asked:
        return "paper"
    return "green" if condition.key in hold else "idle"


def _otherwise(given: Mapping[str, str], control: str) -> str:
    """What the other answers to one question would lead to, if that is not the same."""
    now, changes = picked(given), {}
    for value, option in ANSWERS[control].items():
        other = picked({**given, control: value})
        if other != now:
            name = other[0] if other[0] != now[0] else other[1]
            changes.setdefault(name, []).append(option.words)
    return "; ".join(f"{name}: {' / '.join(options)}" for name, options in changes.items()) or "nothing"


EXPLORATION = Exploration(
    "Which engine, and does Dynamo pay?",
    tuple(
        Choice(control, LABELS[control], next(iter(options)), tuple((value, o.words) for value, o in options.items()))
        for control, options in ANSWERS.items()
    ),
    explore,
)
