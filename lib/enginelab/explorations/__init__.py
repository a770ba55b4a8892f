"""The live figures of the book, one module each; what they are made of is in `exploring`. (Most chapters.)

Each module holds one `EXPLORATION`; `offers` is what several let the reader choose from. `answer` is the door for a
program that speaks JSON: the reader's browser.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict

from ..exploring import Complaint, Exploration

NAMES = (
    "slots",
    "tokens",
    "batch_size",
    "fit",
    "request_life",
    "routing",
    "disaggregation",
    "planner_day",
    "speculation",
    "chooser",
)


def find(name: str) -> Exploration:
    """The exploration of that name. Raises `LookupError`, with the names that there are."""
    if name not in NAMES:
        raise LookupError(f"no live figure is called {name!r}; there are {', '.join(NAMES)}")
    return importlib.import_module(f"{__name__}.{name}").EXPLORATION


def answer(name: str, settings: str) -> str:
    """What exploration `name` answers to `settings`, a JSON object of texts by control; JSON again.

    `{"picture": …}`, each chart with its `kind` (the class's name), or `{"complaint": {"control", "sentence"}}`.
    """
    try:
        picture = find(name)(json.loads(settings))
    except Complaint as complaint:
        return json.dumps({"complaint": {"control": complaint.control, "sentence": str(complaint)}})
    charts = [{"kind": type(chart).__name__, **asdict(chart)} for chart in picture.charts]
    return json.dumps({"picture": {**asdict(picture), "charts": charts}})
