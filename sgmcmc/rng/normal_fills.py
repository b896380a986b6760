"""Normals in bulk: up to 64 at a time, first their words, then what is made of them.

Neighbours are elements along a row, or steps, or chains packed side by side, whichever are many; the bits are the same. Words and
normals have a loop each: a processor looks some 250 instructions ahead, and of both together that is not even one turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.intrinsics import ROOM, room
from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.rng.normals import normal_pair
from sgmcmc.rng.philox4x32 import Lanes, Stream, words

__all__ = ["fill_normals", "fill_single_normals"]


class _Along(NamedTuple):
    """Groups of four coordinates that follow each other."""

    stream: Any
    step: Any
    group: Any


class _OverSteps(NamedTuple):
    """Steps that follow each other."""

    stream: Any
    step: Any
    group: Any


class _OverLanes(NamedTuple):
    """Chains side by side."""

    lanes: Any
    step: Any
    group: Any


@open_function
def _words_of(axis: Any, i: Any, per_group: Any, extra: Any, purpose: Any) -> Any:
    """The words of neighbour i; a group of four normals has `per_group` indices, of which this is number `extra`."""


@implements(_words_of, _Along)
def _(axis: Any, i: Any, per_group: Any, extra: Any, purpose: Any) -> Any:
    return words(axis.stream, axis.step, per_group * (axis.group + i) + extra, purpose, 0)


@implements(_words_of, _OverSteps)
def _(axis: Any, i: Any, per_group: Any, extra: Any, purpose: Any) -> Any:
    return words(axis.stream, axis.step + np.uint64(i), per_group * axis.group + extra, purpose, 0)


@implements(_words_of, _OverLanes)
def _(axis: Any, i: Any, per_group: Any, extra: Any, purpose: Any) -> Any:
    own = Stream(axis.lanes.key0, axis.lanes.key1, axis.lanes.chains[i])
    return words(own, axis.step, per_group * axis.group + extra, purpose, 0)


@loop(apart=True, inline=True)
def _fill_words(
    axis: Any, count: Any, per_group: Any, extra: Any, purpose: Any, w0: Any, w1: Any, w2: Any, w3: Any
) -> Any:
    for i in range(count):
        w0[i], w1[i], w2[i], w3[i] = _words_of(axis, i, per_group, extra, purpose)


@loop(apart=True, inline=True)
def _fill_pairs(like: Any, count: Any, w0: Any, w1: Any, w2: Any, w3: Any, z0: Any, z1: Any) -> Any:
    for i in range(count):
        z0[i], z1[i] = normal_pair(w0[i], w1[i], w2[i], w3[i], like)


@open_function(fastmath=LOOP)
def _fill_two(like: Any, axis: Any, count: Any, purpose: Any, z0: Any, z1: Any) -> Any:
    """The first two normals of the groups of `count` neighbours, at most 64."""


@open_function(fastmath=LOOP)
def _fill_four(like: Any, axis: Any, count: Any, purpose: Any, z0: Any, z1: Any, z2: Any, z3: Any) -> Any:
    """All four normals of the groups of `count` neighbours, at most 64."""


@implements(_fill_two, np.float32)
def _(like: Any, axis: Any, count: Any, purpose: Any, z0: Any, z1: Any) -> None:
    word = np.uint32(0)
    w0, w1, w2, w3 = room(word), room(word), room(word), room(word)
    _fill_words(axis, count, 1, 0, purpose, w0, w1, w2, w3)
    _fill_pairs(like, count, w0, w1, w2, w3, z0, z1)


@implements(_fill_four, np.float32)
def _(like: Any, axis: Any, count: Any, purpose: Any, z0: Any, z1: Any, z2: Any, z3: Any) -> None:
    word = np.uint32(0)
    w0, w1, w2, w3 = room(word), room(word), room(word), room(word)
    _fill_words(axis, count, 1, 0, purpose, w0, w1, w2, w3)
    _fill_pairs(like, count, w0, w1, w2, w3, z0, z1)
    _fill_pairs(like, count, w2, w3, w0, w1, z2, z3)


@implements(_fill_two, np.float64)
def _(like: Any, axis: Any, count: Any, purpose: Any, z0: Any, z1: Any) -> None:
    word = np.uint32(0)
    w0, w1, w2, w3 = room(word), room(word), room(word), room(word)
    _fill_words(axis, count, 2, 0, purpose, w0, w1, w2, w3)
    _fill_pairs(like, count, w0, w1, w2, w3, z0, z1)


@implements(_fill_four, np.float64)
def _(like: Any, axis: Any, count: Any, purpose: Any, z0: Any, z1: Any, z2: Any, z3: Any) -> None:
    word = np.uint32(0)
    w0, w1, w2, w3 = room(word), room(word), room(word), room(word)
    _fill_words(axis, count, 2, 0, purpose, w0, w1, w2, w3)
    _fill_pairs(like, count, w0, w1, w2, w3, z0, z1)
    _fill_words(axis, count, 2, 1, purpose, w0, w1, w2, w3)
    _fill_pairs(like, count, w0, w1, w2, w3, z2, z3)


@open_function(on=2, inline=False, fastmath=LOOP)
def fill_normals(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> Any:
    """out[s, j] = the normal of (step + s, coordinate first + j), for a `first` that is a multiple of 4.

    With `Lanes`, out[s, j] is that of coordinate first + j // width of the chain in lane j % width.
    """


@implements(fill_normals, object, Stream)
def _(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> None:
    steps, n = out.shape
    start, group = np.uint64(step), np.int64(first) // 4
    # Vectorise along the rows if they are long, else over the steps; so it is, too, for what is left of a row.
    along = n // 4 if n >= 64 or n > 4 * steps else 0
    for s in range(steps if along > 0 else 0):
        _fill_row(out[s, : 4 * along], stream, start + np.uint64(s), purpose, group)
    if 4 * along < n:
        _fill_columns(out[:, 4 * along :], stream, start, purpose, group + along)


@loop(apart=True)
def _fill_row(row: Any, stream: Any, step: Any, purpose: Any, group: Any) -> Any:
    like = row.dtype.type(0)
    z0, z1, z2, z3 = room(like), room(like), room(like), room(like)
    for low in range(0, row.size // 4, ROOM):
        count = min(ROOM, row.size // 4 - low)
        _fill_four(like, _Along(stream, step, group + low), count, purpose, z0, z1, z2, z3)
        part = row[4 * low : 4 * (low + count)]
        for i in range(count):
            part[4 * i] = z0[i]
            part[4 * i + 1] = z1[i]
            part[4 * i + 2] = z2[i]
            part[4 * i + 3] = z3[i]


@loop(apart=True)
def _fill_columns(out: Any, stream: Any, step: Any, purpose: Any, group: Any) -> Any:
    """Short rows: over the steps, four columns at a time."""
    like = out.dtype.type(0)
    z0, z1, z2, z3 = room(like), room(like), room(like), room(like)
    steps, n = out.shape
    for c in range(0, n, 4):
        for s in range(0, steps, ROOM):
            axis, count = _OverSteps(stream, step + np.uint64(s), group + c // 4), min(ROOM, steps - s)
            if n - c <= 2:
                _fill_two(like, axis, count, purpose, z0, z1)
            else:
                _fill_four(like, axis, count, purpose, z0, z1, z2, z3)
            for i in range(count):
                out[s + i, c] = z0[i]
                if n - c > 1:
                    out[s + i, c + 1] = z1[i]
                if n - c > 2:
                    out[s + i, c + 2] = z2[i]
                if n - c > 3:
                    out[s + i, c + 3] = z3[i]


@loop(apart=True)
def fill_single_normals(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> Any:
    """out[i] = the first normal of the words at index first + i: for numbers that each have an address of their own."""
    word, like = np.uint32(0), out.dtype.type(0)
    w0, w1, w2, w3, spare = room(word), room(word), room(word), room(word), room(like)
    for low in range(0, out.size, ROOM):
        count = min(ROOM, out.size - low)
        for i in range(count):
            w0[i], w1[i], w2[i], w3[i] = words(stream, step, first + low + i, purpose, 0)
        _fill_pairs(like, count, w0, w1, w2, w3, out[low : low + count], spare)


# ---- chains packed side by side -------------------------------------------------------------------------------------


@implements(fill_normals, object, Lanes)
def _(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> None:
    """Over the lanes, of which there are at most 64, or over the steps if few are wanted."""
    start, group = np.uint64(step), np.int64(first) // 4
    if stream.live >= 4:
        for s in range(out.shape[0]):
            _fill_packed_row(out[s], stream, start + np.uint64(s), purpose, group)
    else:
        for lane in range(stream.live):
            _fill_lane(out, lane, stream, start, purpose, group)


@loop(apart=True)
def _fill_packed_row(row: Any, lanes: Any, step: Any, purpose: Any, group: Any) -> Any:
    """Four coordinates at a time; what a last group has too many goes into a spare row."""
    like, width = row.dtype.type(0), lanes.chains.size
    spare = room(like)
    for low in range(0, row.size, 4 * width):
        rows, axis = (row.size - low) // width, _OverLanes(lanes, step, group + low // (4 * width))
        z0 = row[low : low + width]
        z1 = row[low + width : low + 2 * width] if rows > 1 else spare
        if rows <= 2:
            _fill_two(like, axis, width, purpose, z0, z1)
        else:
            z2 = row[low + 2 * width : low + 3 * width]
            z3 = row[low + 3 * width : low + 4 * width] if rows > 3 else spare
            _fill_four(like, axis, width, purpose, z0, z1, z2, z3)


@loop(apart=True)
def _fill_lane(out: Any, lane: Any, lanes: Any, step: Any, purpose: Any, group: Any) -> Any:
    """One lane for all steps. What lane 0 gets, the lanes without a chain get too: they follow it."""
    like, own, width = out.dtype.type(0), Stream(lanes.key0, lanes.key1, lanes.chains[lane]), lanes.chains.size
    z0, z1, z2, z3 = room(like), room(like), room(like), room(like)
    steps, rows = out.shape[0], out.shape[1] // width
    for r in range(0, rows, 4):
        for s in range(0, steps, ROOM):
            axis, count = _OverSteps(own, step + np.uint64(s), group + r // 4), min(ROOM, steps - s)
            part = out[s : s + count]
            if rows - r <= 2:
                _fill_two(like, axis, count, purpose, z0, z1)
            else:
                _fill_four(like, axis, count, purpose, z0, z1, z2, z3)
            _spread(part, r, lane, lanes.live, width, z0)
            if rows - r > 1:
                _spread(part, r + 1, lane, lanes.live, width, z1)
            if rows - r > 2:
                _spread(part, r + 2, lane, lanes.live, width, z2)
            if rows - r > 3:
                _spread(part, r + 3, lane, lanes.live, width, z3)


@loop(apart=True)
def _spread(out: Any, row: Any, lane: Any, live: Any, width: Any, z: Any) -> Any:
    """One normal for each step into a lane, and from lane 0 into those without a chain."""
    for i in range(out.shape[0]):
        out[i, row * width + lane] = z[i]
        for idle in range(live if lane == 0 else width, width):
            out[i, row * width + idle] = z[i]
