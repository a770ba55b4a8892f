"""KV sizes, prefix look-ups, and the pool of blocks on its own; the engine's oracle checks the pool in use."""

import pytest

from enginelab import kvcache, workload
from enginelab.hardware import H100, LLAMA_3_1_8B, Model


def test_a_block_of_llama_8b_takes_two_mebibytes():
    assert kvcache.block_bytes(LLAMA_3_1_8B, 16) == 2 * 2**20
    with pytest.raises(ValueError, match="block_size"):
        kvcache.block_bytes(LLAMA_3_1_8B, 0)


def test_blocks_fill_the_memory_beside_the_weights():
    blocks = kvcache.blocks_that_fit(LLAMA_3_1_8B, H100)
    left = 0.9 * H100.memory_bytes - LLAMA_3_1_8B.weight_bytes
    assert blocks * 2 * 2**20 <= left < (blocks + 1) * 2 * 2**20
    huge = Model("huge", 1e12, 1e12, 1, 1, 1, "made up")
    assert kvcache.blocks_that_fit(huge, H100) == 0


def test_hit_rate_of_a_trace_by_hand():
    rate = kvcache.replay_hit_rate([[1, 2, 3], [1, 2, 4], (9,), []])
    assert (rate.hits, rate.lookups, rate.rate) == (2, 7, 2 / 7)
    assert kvcache.replay_hit_rate([]).rate == 0.0


def test_hit_rate_of_the_mooncake_trace(public_data):
    requests = workload.read_mooncake(public_data / "mooncake-conversation.jsonl")
    rate = kvcache.replay_hit_rate(request.block_ids for request in requests)
    assert (rate.hits, rate.lookups) == (105_710, 288_500)
    assert f"{rate.rate:.2%}" == "36.64%"


def filled(pool, ids):
    """A request's last run, after it has taken and filled the blocks `ids` that are not cached yet."""
    match = pool.match(ids, len(ids))
    last = pool.hold(match) if match.blocks else pool.root
    pool.free -= len(ids) - match.blocks
    return pool.fill(last, ids, len(ids))


def test_the_end_of_the_least_recently_freed_prompt_is_evicted_first():
    pool = kvcache.BlockPool(8, caching=True)
    for ids in ((1, 2, 3, 4), (5, 6, 7)):
        pool.release(filled(pool, ids), len(ids), len(ids), len(ids))
    assert pool.free == 8
    pool.free -= 3  # one block is blank
    assert pool.match((1, 2, 3, 4), 4).blocks == 2 and pool.match((5, 6, 7), 3).blocks == 3
    pool.free -= 5
    assert pool.free == pool.match((1, 2), 2).blocks == pool.match((5,), 1).blocks == 0


def test_using_a_prefix_splits_the_run_and_keeps_it():
    pool = kvcache.BlockPool(5, caching=True)
    pool.release(filled(pool, (1, 2, 3, 4)), 4, 4, 4)
    other = filled(pool, (1, 2, 9))
    assert (pool.free, pool.held) == (2, 3)
    assert pool.match((1, 2, 3, 4), 4) == (4, *pool.match((1, 2, 3, 4), 4)[1:3], 2)
    pool.free -= 2
    assert pool.match((1, 2, 3, 4), 4).blocks == 2, "what a request holds is not evicted"
    pool.release(other, 3, 3, 3)
    assert pool.match((1, 2, 9), 3).blocks == 3


def test_a_copy_takes_over_when_the_first_block_of_that_content_goes():
    pool = kvcache.BlockPool(4, caching=True)
    first = filled(pool, (1, 2))
    match = pool.match((1, 2), 1)  # the last block of a whole prompt is computed again
    second = pool.hold(match)
    pool.free -= 1
    second = pool.fill(second, (1, 2), 2)
    pool.release(first, 2, 2, 2)
    assert pool.free == 2
    pool.free -= 2  # the blank one, and the first copy of block 2
    assert pool.match((1, 2), 2).blocks == 2
    pool.release(second, 2, 2, 2)
    pool.free -= 1
    assert pool.match((1, 2), 2).blocks == 1


def test_a_preempted_request_finds_what_is_left_of_its_own():
    pool = kvcache.BlockPool(4, caching=True)
    pool.free -= 4
    own = pool.release(pool.root, shared=0, full=3, blocks=4, keep=True)
    pool.free -= 2
    assert pool.hold_own(own) == 2 and pool.free == 0
