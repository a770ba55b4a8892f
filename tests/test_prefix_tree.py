"""The radix tree of prompts against a set of blocks."""

import random

from hypothesis import given
from hypothesis import strategies as st

from enginelab.prefix_tree import ActivePrompts, known


@given(st.integers(0, 2**32))
def test_active_prompts_count_each_block_once(seed):
    draw = random.Random(seed)
    tree, held, numbers = ActivePrompts(), [], iter(range(10**6))
    prompts = [()]
    for _ in range(40):
        if held and draw.random() < 0.4:
            run, _ = held.pop(draw.randrange(len(held)))
            tree.remove(run)
        else:
            base = draw.choice(prompts)
            ids = base[: draw.randint(0, len(base))] + tuple(next(numbers) for _ in range(draw.randrange(4)))
            prompts.append(ids)
            count = draw.randint(0, len(ids))
            held.append((tree.add(ids, count), ids[:count]))
        active = {block for _, ids in held for block in ids}
        assert tree.blocks == len(active)
        ids = draw.choice(prompts)
        assert known(ids, len(ids), tree.root) == (sum(block in active for block in ids), True)
