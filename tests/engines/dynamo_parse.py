"""Run by the Python of Dynamo's environment: commands on stdin; on stdout what Dynamo's own parsers make of each.

A command is {"module": "frontend", "argv": […]}. The answer holds what the parser complained of, all spellings of the
flags that it knows, and the words that it left to somebody else.

`sglang`: Dynamo's parser hands on what it does not know to SGLang's, which is not installed here: these words are left.
`trtllm`: Dynamo's parser takes four defaults from tensorrt_llm, which has no build for a CPU: a stand-in has none.
"""

import argparse
import contextlib
import io
import json
import os
import sys
from collections import defaultdict
from importlib.metadata import version
from types import ModuleType, SimpleNamespace

os.environ["DYN_LOG"] = "off"
KNOWN = set()
parse_known_args = argparse.ArgumentParser.parse_known_args


def spy(parser, *args, **kwargs):
    KNOWN.update(option for action in parser._actions for option in action.option_strings)
    return parse_known_args(parser, *args, **kwargs)


def frontend(argv):
    from dynamo.frontend.main import parse_args

    sys.argv = ["dynamo.frontend", *argv]
    parse_args()


def mocker(argv):
    from dynamo.mocker.args import parse_args

    parse_args(argv)


def vllm(argv):
    from dynamo.vllm.args import parse_args

    parse_args(argv)


def sglang(argv):
    from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
    from dynamo.sglang.backend_args import DynamoSGLangArgGroup

    parser = argparse.ArgumentParser(allow_abbrev=False)
    DynamoRuntimeArgGroup().add_arguments(parser)
    DynamoSGLangArgGroup().add_arguments(parser)
    return parser.parse_known_args(argv)[1]


def trtllm(argv):
    llmapi = ModuleType("tensorrt_llm.llmapi")
    llmapi.BuildConfig = SimpleNamespace(model_fields=defaultdict(lambda: SimpleNamespace(default=None)))
    sys.modules |= {"tensorrt_llm": ModuleType("tensorrt_llm"), "tensorrt_llm.llmapi": llmapi}
    from dynamo.trtllm.args import parse_args

    parse_args(argv)


PARSERS = {parser.__name__: parser for parser in (frontend, mocker, vllm, sglang, trtllm)}


def answer(case: dict) -> dict:
    complaint, left = io.StringIO(), None
    KNOWN.clear()
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            left = PARSERS[case["module"]](case["argv"])
    except (SystemExit, ValueError) as error:
        return {"error": f"{complaint.getvalue()[-500:]} {error}"}
    return {"error": "", "left": left or [], "options": sorted(KNOWN)}


argparse.ArgumentParser.parse_known_args = spy
print(json.dumps({"dynamo": version("ai-dynamo"), "answers": [answer(case) for case in json.load(sys.stdin)]}))
