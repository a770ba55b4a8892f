"""Choosing: the decision tree of the lesson as a function that explains itself, and when Dynamo pays. (Chapter 6.)

`engine` walks `TREE`; the chapter draws the very same `TREE`. The tree condenses three "use when" lists; real choices
can differ, and are made per deployment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """One thing to know about a deployment: the keyword that `engine` takes, and the words for a reader."""

    key: str
    says: str


@dataclass(frozen=True)
class Answer:
    """A leaf of the tree: an engine, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Question:
    """A fork of the tree. It is answered yes if all (`needs="all"`) or any (`needs="any"`) of its conditions hold."""

    text: str
    conditions: tuple[Condition, ...]
    needs: str
    yes: Question | Answer
    no: Question | Answer


@dataclass(frozen=True)
class Choice:
    """What was chosen, why, and the path through the tree: each question with its answer and what decided it."""

    name: str
    why: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.path, f"→ {self.name}: {self.why}"])


TREE = Question(
    "Hopper or newer GPU, a supported model, and top performance wanted?",
    (
        Condition("hopper_or_newer", "a Hopper or newer GPU"),
        Condition("supported", "a model architecture that TensorRT-LLM supports well"),
        Condition("top_performance", "top performance wanted, at the price of more engineering"),
    ),
    "all",
    yes=Answer("TensorRT-LLM", "NVIDIA's own kernels reach the best performance on its newest GPUs."),
    no=Question(
        "Large MoE model, image or video engine, or deep customization?",
        (
            Condition("large_moe", "a large mixture-of-experts model, such as DeepSeek or Kimi"),
            Condition("image_or_video", "image or video generation"),
            Condition("customization", "control over single components of the engine"),
        ),
        "any",
        yes=Answer("SGLang", "strong on large MoE models, on diffusion pipelines, and made to be customized."),
        no=Answer("vLLM", "broad support, a quick start, Omni models, and smaller or older GPUs."),
    ),
)


def questions(node: Question | Answer = TREE) -> Iterator[Question]:
    """Every question of a tree, from the top down."""
    if isinstance(node, Question):
        yield node
        yield from questions(node.yes)
        yield from questions(node.no)


def engine(tree: Question | Answer = TREE, **facts: bool) -> Choice:
    """The engine that the tree picks for a deployment.

    `facts` are the keys of the tree's conditions, True or False; what is not given counts as False. Raises
    `ValueError` for a key that the tree does not ask about, or a value that is neither True nor False.
    """
    known = [condition.key for question in questions(tree) for condition in question.conditions]
    for key, value in facts.items():
        if key not in known:
            raise ValueError(f"{key} is not asked by the tree; it asks for {', '.join(known)}")
        if not isinstance(value, bool):
            raise ValueError(f"{key} must be True or False, not {value!r}")
    path, node = [], tree
    while isinstance(node, Question):
        met = [c for c in node.conditions if facts.get(c.key, False)]
        yes = len(met) == len(node.conditions) if node.needs == "all" else bool(met)
        path.append(f"{node.text} {'Yes' if yes else 'No'}: {_reason(node, met, yes)}.")
        node = node.yes if yes else node.no
    return Choice(node.name, node.why, tuple(path))


def _reason(question: Question, met: list[Condition], yes: bool) -> str:
    if yes:
        return " and ".join(condition.says for condition in met)
    missing = [condition.says for condition in question.conditions if condition not in met]
    return ("without " if question.needs == "all" else "neither ") + (", nor ".join(missing))


DYNAMO = (
    Condition("high_volume", "traffic high enough for disaggregation and KV-aware routing to matter"),
    Condition("many_gpus", "more than one worker to route between"),
)


def dynamo(high_volume: bool, many_gpus: bool, foundation_model: bool = False) -> Choice:
    """Whether NVIDIA Dynamo is worth its complexity above the engines.

    high_volume       traffic is high enough for disaggregation and KV-aware routing to matter
    many_gpus         the deployment has several workers
    foundation_model  the model is a foundation model, up to the trillion-parameter kind

    Returns a `Choice` named "Dynamo" or "the engine alone".
    """
    given = {"high_volume": high_volume, "many_gpus": many_gpus, "foundation_model": foundation_model}
    for key, value in given.items():
        if not isinstance(value, bool):
            raise ValueError(f"{key} must be True or False, not {value!r}")
    missing = [condition.says for condition in DYNAMO if not given[condition.key]]
    if missing:
        return Choice("the engine alone", "Dynamo would be work and overhead.", (f"Missing: {'; '.join(missing)}.",))
    gain = "Big models with big traffic gain most." if foundation_model else "Smaller models gain moderately."
    return Choice("Dynamo", gain, (f"There: {'; '.join(condition.says for condition in DYNAMO)}.",))
