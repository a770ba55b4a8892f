"""How well a model agreed with the real program it is a model of: the last fidelity run. (Chapters 2 and 7.)

`fidelity.json`, beside this file, is what the programs behind `make fidelity` keep; no page types its numbers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

RECORD = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Agreement:
    """Random loads that model and program were both given, and for how many their answers were identical.

    version  of the real program
    date     when the run was made
    """

    version: str
    loads: int
    identical: int
    date: date

    @property
    def day(self) -> str:
        """The date as a page shows it: "1 December 2026"."""
        return f"{self.date.day} {self.date:%B %Y}"


def read(program: str, record: Path = RECORD) -> Agreement:
    """The last agreement with `program`: "vllm" (its V1 scheduler), "dynamo router" or "dynamo planner".

    Raises `ValueError` if the record has no run of it, or the entry is not one.
    """
    runs = json.loads(record.read_text(encoding="utf-8"))
    if program not in runs:
        raise ValueError(f"{record.name} has no run of {program!r}, only of {sorted(runs)}: run `make fidelity`")
    try:
        entry = runs[program]
        return Agreement(entry["version"], entry["loads"], entry["identical"], date.fromisoformat(entry["date"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{record.name}: {program!r} is not the record of a fidelity run ({error})") from None


def keep(program: str, agreement: Agreement, record: Path = RECORD) -> None:
    """Write down the agreement with `program`, in place of the last one; other programs' entries stay."""
    runs = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    runs[program] = asdict(agreement) | {"date": agreement.date.isoformat()}
    record.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
