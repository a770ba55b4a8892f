"""What this machine is, and which lab can run on it. (The Preflight of every lab.)

`machine()` looks; `check()` compares what it saw with what an engine needs. Neither opens a connection; `hub()` does.

    python -m enginelab.preflight                      every lab on this machine
    python -m enginelab.preflight --machine T4         the same sentences for a machine that you do not have yet
    python -m enginelab.preflight --lab 02 --hub       one lab, and whether the model hub has its model
    python -m enginelab.preflight --all                every lab on every machine of the table
"""

from __future__ import annotations

import argparse
import sys

from .inspection import hub, machine
from .machines import DESCRIBED, Gpu, Machine, described
from .needs import LABS, needs
from .table import Table
from .verdicts import Verdict, check, engines, lab

__all__ = ["Gpu", "Machine", "Verdict", "check", "engines", "hub", "lab", "machine", "main", "needs", "overview"]


def overview() -> Table:
    """Every lab on every machine of the table, in few words."""
    rows = []
    for name in LABS:
        verdicts = [lab(name, each.machine) for each in DESCRIBED]
        rows.append((name, *(_brief(name, verdict) for verdict in verdicts)))
    return Table(("lab", *(each.name for each in DESCRIBED)), tuple(rows))


def _brief(name: str, verdict: Verdict) -> str:
    if not verdict.ok:
        return "no"
    words = [verdict.mode.upper()]
    if len(LABS[name]) > 1:
        words.append(f"{verdict.engine.count(',') + 1} engines")
    elif verdict.mode == "gpu" and verdict.version != needs(verdict.engine).version:
        words.append(verdict.version)
    return " ".join(words)


def main(words: list[str] | None = None) -> int:
    """Print the verdicts that the command line asks for; 0 if every lab asked for can run, 1 if one cannot."""
    parser = argparse.ArgumentParser(prog="enginelab.preflight", description="Which labs can run on which machine.")
    parser.add_argument("--machine", choices=[each.name for each in DESCRIBED], type=str.upper, help="not this one")
    parser.add_argument("--lab", help="one lab, by its name or its number")
    parser.add_argument("--hub", action="store_true", help="ask the model hub, over the network, for the lab's model")
    parser.add_argument("--all", action="store_true", help="a table of every lab on every described machine")
    given = parser.parse_args(words)
    if given.all:
        print(overview())
        return 0
    wanted = [name for name in LABS if given.lab is None or given.lab in (name, name.split("_")[0])]
    if not wanted:
        parser.error(f"--lab must be one of {', '.join(LABS)}")
    here = described(given.machine) if given.machine else machine()
    print(f"{here.describe()}\n")
    verdicts = {name: lab(name, here) for name in wanted}
    for name, verdict in verdicts.items():
        print(f"{name}: {verdict.sentence}")
    if given.hub:
        for model in sorted({verdict.model for verdict in verdicts.values() if verdict.model}):
            print(hub(model).sentence)
    return 0 if all(verdict.ok for verdict in verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
