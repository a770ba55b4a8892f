"""Fused kernels against a machine that runs them on numbers and counts what crosses its memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.kernels import Kernel, captured, fuse, launched, padded, replayed

SWIGLU = [Kernel("silu", ("gate",), ("s",)), Kernel("multiply", ("s", "up"), ("out",))]
times = st.lists(st.floats(0, 10), min_size=1, max_size=30)


def test_fusing_two_kernels_keeps_what_passes_between_them_on_the_chip():
    one = fuse("swiglu", SWIGLU, needed={"out"})
    assert (set(one.reads), one.writes) == ({"gate", "up"}, ("out",))
    sizes = dict.fromkeys(("gate", "up", "s", "out"), 10)
    assert sum(kernel.bytes_moved(sizes) for kernel in SWIGLU) == 50 and one.bytes_moved(sizes) == 30


def test_what_is_needed_later_is_still_written():
    assert fuse("swiglu", SWIGLU, needed={"out", "s"}).writes == ("s", "out")


@given(st.randoms(use_true_random=False))
def test_a_fused_chain_moves_what_a_chip_with_room_for_everything_moves(draw):
    """Walk random chains with a chip that remembers: a read costs the first time, a write only if needed outside."""
    kernels, known = [], ["a", "b"]
    for index in range(draw.randint(1, 6)):
        reads = tuple(dict.fromkeys(draw.choice(known) for _ in range(draw.randint(1, 3))))
        kernels.append(Kernel(f"k{index}", reads, (f"t{index}",)))
        known.append(f"t{index}")
    sizes = {name: draw.randint(1, 9) for name in known}
    needed = {kernels[-1].writes[0]} | {name for name in known[2:] if draw.random() < 0.3}
    on_chip, moved = set(), 0
    for kernel in kernels:
        moved += sum(sizes[name] for name in kernel.reads if name not in on_chip)
        on_chip |= {*kernel.reads, *kernel.writes}
        moved += sum(sizes[name] for name in kernel.writes if name in needed)
    fused = fuse("all", kernels, needed)
    assert fused.bytes_moved(sizes) == moved <= sum(kernel.bytes_moved(sizes) for kernel in kernels)


def test_a_chain_in_the_wrong_order_is_refused():
    with pytest.raises(ValueError, match="silu writes s"):
        fuse("swiglu", SWIGLU[::-1], needed={"out"})


@given(durations=times, launch=st.floats(0, 5))
def test_kernels_wait_for_their_launch_and_for_each_other_and_for_nothing_else(durations, launch):
    ran = launched(durations, launch)
    free, issued = 0.0, 0.0
    for (start, end), duration in zip(ran, durations, strict=True):
        issued += launch
        assert start == pytest.approx(max(free, issued)) and end == start + duration
        free = end


@given(durations=times, launch=st.floats(0, 5))
def test_a_graph_takes_one_launch_and_is_never_slower(durations, launch):
    end = replayed(durations, launch)[-1].end
    assert end == pytest.approx(launch + sum(durations))
    assert end <= launched(durations, launch)[-1].end * (1 + 1e-9)


def test_launches_hide_behind_long_kernels_and_not_behind_short_ones():
    long, short = launched([10.0] * 100, 5.0)[-1].end, launched([1.0] * 100, 5.0)[-1].end
    assert (long, short) == (5 + 1000, 500 + 1)
    assert replayed([1.0] * 100, 5.0)[-1].end == 105


def test_graphs_are_captured_where_vllm_captures_them():
    assert captured(512)[:5] == (1, 2, 4, 8, 16) and captured(512)[-3:] == (480, 496, 512)
    assert len(captured(512)) == 51 and captured(3) == (1, 2)


@given(st.integers(1, 600))
def test_a_batch_is_padded_to_the_next_graph(batch):
    sizes, found = captured(512), padded(batch, captured(512))
    if found is None:
        assert batch > 512
    else:
        assert found in sizes and found >= batch and not any(batch <= size < found for size in sizes)
