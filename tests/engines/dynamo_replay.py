"""Run by the Python of Dynamo's environment: a Mooncake trace and a fleet on stdin, its offline replay on stdout.

The time is that of the replay alone, in CPU seconds of all threads; reading the trace is part of it.
"""

import json
import os
import sys
import time
from importlib.metadata import version

os.environ["DYN_LOG"] = "error"

from dynamo.mocker.config import normalize_mocker_config
from dynamo.replay import run_trace_replay

asked = json.load(sys.stdin)
engine = normalize_mocker_config({"engine": asked["engine"]})
begin = time.process_time()
report = run_trace_replay(
    asked["trace"],
    extra_engine_args=engine,
    num_workers=asked["workers"],
    router_mode=asked["policy"],
    trace_block_size=asked["engine"]["block_size"],
)
seconds = time.process_time() - begin
print(json.dumps({"dynamo": version("ai-dynamo"), "seconds": seconds, "summary": report.summary}))
