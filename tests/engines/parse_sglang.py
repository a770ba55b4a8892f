"""Run by a Python that can import SGLang: argument lists of its server on stdin; on stdout its version, what its parser
makes of each list, and every spelling of a flag that it declares."""

import argparse
import contextlib
import io
import json
import sys
from importlib.metadata import version

from sglang.srt.server_args import ServerArgs

PARSER = argparse.ArgumentParser(prog="sglang serve")
ServerArgs.add_cli_args(PARSER)


def parse(argv: list[str]) -> dict:
    """All values that can be written as JSON, or what the parser complained of under "error"."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            arguments = PARSER.parse_args(argv)
    except SystemExit:
        return {"error": complaint.getvalue()}
    return {name: value for name, value in vars(arguments).items() if isinstance(value, (bool, int, float, str, list))}


parsed = [parse(argv) for argv in json.load(sys.stdin)]
options = sorted(option for action in PARSER._actions for option in action.option_strings)
print(json.dumps({"version": version("sglang"), "parsed": parsed, "options": options}, default=str))
