"""Run by the engine's Python: token lists and limits on stdin; on stdout what vLLM's n-gram proposer guesses."""

import json
import sys

import numpy
from vllm.v1.spec_decode.ngram_proposer import _find_longest_matched_ngram_and_propose_tokens as propose

FAR = 1 << 20  # no longest model length in the way

guesses = [
    propose(numpy.array(tokens, numpy.int32), shortest, longest, FAR, draft_tokens).tolist()
    for tokens, draft_tokens, longest, shortest in json.load(sys.stdin)
]
print(json.dumps(guesses))
