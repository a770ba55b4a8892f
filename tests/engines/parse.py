"""Run by the engine's Python: argument lists of `vllm serve` on stdin; on stdout what vLLM's parser makes of each,
and every spelling of a flag that it knows."""

import contextlib
import io
import json
import sys

from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

PARSER = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))


def parse(argv: list[str]) -> dict:
    """All values that can be written as JSON, or what the parser complained of under "error"."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            arguments = PARSER.parse_args(argv)
            validate_parsed_serve_args(arguments)
    except SystemExit:
        return {"error": complaint.getvalue()}
    return {name: value for name, value in vars(arguments).items() if isinstance(value, (bool, int, float, str, list))}


parsed = [parse(argv) for argv in json.load(sys.stdin)]
options = sorted(option for action in PARSER._actions for option in action.option_strings)
print(json.dumps({"parsed": parsed, "options": options}, default=str))
