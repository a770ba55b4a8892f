"""Run by the engine's Python with "omni" or "sglang": argument lists of the serve command on stdin; on stdout what the
engine's own parser makes of each, and every spelling of a flag that it knows."""

import argparse
import contextlib
import io
import json
import sys


def omni():
    """The parser of `vllm serve --omni`."""
    from vllm_omni.entrypoints.cli.serve import _ensure_vllm_platform, cmd_init
    from vllm_omni.utils.tracking_parser import TrackingArgumentParser

    _ensure_vllm_platform()
    return cmd_init()[0].subparser_init(TrackingArgumentParser().add_subparsers())


def sglang():
    """The parser of `sglang serve` for a diffusion model; --model-type is read before, and apart from, the others."""
    from sglang.cli.serve import _extract_model_type_override
    from sglang.multimodal_gen.runtime.entrypoints.cli.serve import add_multimodal_gen_serve_args

    parser = argparse.ArgumentParser(prog="sglang serve")
    add_multimodal_gen_serve_args(parser)
    whole = parser.parse_args

    def parse_args(argv):
        kind, rest = _extract_model_type_override(argv)
        values = whole(rest)
        values.model_type = kind
        return values

    parser.parse_args = parse_args
    parser._actions.append(argparse.Action(["--model-type"], "model_type"))
    return parser


def parse(parser, argv: list[str]) -> dict:
    """All values that can be written as JSON, or what the parser complained of under "error"."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            arguments = parser.parse_args(argv)
    except SystemExit:
        return {"error": complaint.getvalue()}
    return {name: value for name, value in vars(arguments).items() if isinstance(value, (bool, int, float, str, list))}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # engines print to standard output what is no answer
        parser = {"omni": omni, "sglang": sglang}[sys.argv[1]]()
        parsed = [parse(parser, argv) for argv in json.load(sys.stdin)]
    options = sorted(option for action in parser._actions for option in action.option_strings)
    print(json.dumps({"parsed": parsed, "options": options}, default=str))
