"""Run by SGLang's Python: cases of chances, steps and draft tokens on stdin; on stdout what SGLang's EAGLE would check.

Its own functions grow and cut the tree, fed with a draft that gives every node the same chances; the answer is the
probability of the whole path of each node that is kept.
"""

import json
import os
import sys

os.environ["TORCH_COMPILE_DISABLE"] = "1"

import torch
from sglang.srt.speculative.eagle_utils import organize_draft_results
from sglang.srt.speculative.spec_utils import select_top_k_tokens


def kept(chances, steps, draft_tokens):
    topk, scores, grown = len(chances), None, []
    for step in range(steps):
        rows = 1 if step == 0 else topk
        probabilities = torch.tensor([chances] * rows, dtype=torch.float64)
        tokens = torch.arange(topk).repeat(rows, 1)
        _, _, scores, tree = select_top_k_tokens(step, probabilities, tokens, None, scores, topk)
        grown.append(tree)
    _, index, _ = organize_draft_results(*map(list, zip(*grown, strict=True)), draft_tokens + 1)
    paths = torch.cat([tree[0] for tree in grown], dim=1).flatten(1)
    return paths[0, index[0]].tolist()


print(json.dumps([kept(*case) for case in json.load(sys.stdin)]))
