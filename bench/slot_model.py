"""How fast the slot model is: requests per second of CPU time, and the ratio to a server walked step by step.

Both do the same work in the same process, one after the other; the best of three runs counts.
"""

import random
import time
from itertools import accumulate

from enginelab import batching

SLOTS = 256


def walk(lengths, slots):
    """The naive loop: one step at a time over every slot."""
    waiting, left, step = iter(lengths), [0] * slots, 0
    busy = True
    while busy:
        busy = False
        for slot in range(slots):
            if left[slot] == 0:
                left[slot] = next(waiting, 0)
            if left[slot]:
                left[slot] -= 1
                busy = True
        step += busy
    return step


def best(function, *arguments, runs=3):
    """The fewest CPU seconds of `runs` runs, and the result."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        result = function(*arguments)
        times.append(time.process_time() - begin)
    return min(times), result


def main():
    draw = random.Random(0).randrange
    lengths = [draw(1, 1000) for _ in range(1_000_000)]
    few = lengths[:10_000]
    arrivals = list(accumulate(draw(5) for _ in lengths))

    naive, steps = best(walk, few, SLOTS)
    ours, schedule = best(batching.continuous, few, SLOTS)
    assert schedule.steps == steps, "the two models disagree"
    print(f"step by step         {len(few) / naive / 1e6:8.4f} M requests/s ({len(few):,} requests, {SLOTS} slots)")
    print(f"continuous           {len(few) / ours / 1e6:8.4f} M requests/s, {naive / ours:,.0f} times as fast")
    for name, policy, given in (
        ("continuous", batching.continuous, ()),
        ("static", batching.static, ()),
        ("continuous, arriving", batching.continuous, (arrivals,)),
        ("static, arriving", batching.static, (arrivals,)),
    ):
        seconds, schedule = best(policy, lengths, SLOTS, *given)
        rate = len(lengths) / seconds / 1e6
        print(f"{name:20} {rate:8.4f} M requests/s ({len(lengths):,} requests, {schedule.steps:,} steps)")


if __name__ == "__main__":
    main()
