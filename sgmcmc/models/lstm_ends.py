"""The two ends of a recurrent network: keys or words that go in, Bernoulli or softmax probabilities that come out.

Frames of music are sparse, four of 88 keys, and words are single numbers: what goes in picks rows of a matrix, and no product
is needed. At the other end the logits are replaced by the slopes of −log p, so that nothing else is stored.
"""

from __future__ import annotations

from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import loop
from sgmcmc.compiler.precision import zero
from sgmcmc.elementary import exp, log, sigmoid, softplus

__all__ = [
    "LANES",
    "add_key_slopes",
    "add_word_slopes",
    "bernoulli",
    "column_sums",
    "fill_steps",
    "pick_words",
    "project_keys",
    "softmax",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

LANES = 128  # numbers of which the largest is found at once


@loop(apart=True)
def add_row(total, part):
    for j in range(total.size):
        total[j] += part[j]


@loop(apart=True)
def copy_row(to, row):
    for j in range(to.size):
        to[j] = row[j]


@kernel
def fill_steps(begins, ends, fresh, now, before):
    """now[t, b] = the place in the data that step t of sequence b predicts, before[t, b] the one it sees; −1 for none."""
    for b in range(now.shape[1]):
        for t in range(now.shape[0]):
            n = begins[b] + t
            now[t, b] = n if n < ends[b] else -1
            before[t, b] = n - 1 if n < ends[b] and not (fresh[b] and t == 0) else -1


@kernel
def project_keys(keys, ends, before, W, bias, out):
    """out[t, b] = bias + Σ W[key] over the keys that sound in the frame before; none where `before` is −1.

    Frame n sounds keys[ends[n]:ends[n + 1]].
    """
    for t in range(out.shape[0]):
        for b in range(out.shape[1]):
            copy_row(out[t, b], bias)
            n = before[t, b]
            if n >= 0:
                for k in range(ends[n], ends[n + 1]):
                    add_row(out[t, b], W[keys[k]])


@kernel
def add_key_slopes(keys, ends, before, slopes, out):
    """∂/∂W: the slopes of a step are added to the row of each key that sounded before it."""
    for t in range(slopes.shape[0]):
        for b in range(slopes.shape[1]):
            n = before[t, b]
            if n >= 0:
                for k in range(ends[n], ends[n + 1]):
                    add_row(out[keys[k]], slopes[t, b])


@kernel
def pick_words(words, before, E, out):
    """out[t, b] = the embedding of the word before."""
    for t in range(out.shape[0]):
        for b in range(out.shape[1]):
            copy_row(out[t, b], E[words[max(before[t, b], 0)]])


@kernel
def add_word_slopes(words, before, slopes, out):
    """∂/∂E: the slopes of a step are added to the row of the word before it."""
    for t in range(slopes.shape[0]):
        for b in range(slopes.shape[1]):
            if before[t, b] >= 0:
                add_row(out[words[before[t, b]]], slopes[t, b])


@kernel
def column_sums(rows, out):
    """out = the sum of all rows."""
    for j in range(out.size):
        out[j] = 0.0
    for n in range(rows.shape[0]):
        add_row(out, rows[n])


@loop(apart=True)
def bernoulli_row(z, bias, y, slopes_too):
    """−log p of one frame, Σ softplus(z) − y z; with `slopes_too` z becomes σ(z) − y."""
    total = zero(z[0])
    for j in range(z.size):
        total += softplus(z[j] + bias[j]) - y[j] * (z[j] + bias[j])
    if slopes_too:
        for j in range(z.size):
            z[j] = sigmoid(z[j] + bias[j]) - y[j]
    return total


@kernel
def bernoulli(frames, now, bias, logits, room, found, slopes_too):
    """found[t, b] = −log p of frame `now`, 0 where that is −1; the logits, bias not yet added, become its slopes."""
    for t in range(found.shape[0]):
        for b in range(found.shape[1]):
            n = now[t, b]
            if n < 0:
                found[t, b] = 0.0
                clear_row(logits[t, b])
            else:
                copy_row(room, frames[n])
                found[t, b] = bernoulli_row(logits[t, b], bias, room, slopes_too)


@loop
def clear_row(z):
    for j in range(z.size):
        z[j] = 0.0


@loop(apart=True)
def keep_larger(lanes, z, bias):
    """z += bias, and the larger of each lane and z."""
    for j in range(lanes.size):
        v = z[j] + bias[j]
        z[j] = v
        lanes[j] = v if v > lanes[j] else lanes[j]


@loop(inline=True)
def shift(z, bias, lanes):
    """z += bias. Returns the largest, lane by lane: a single running maximum is not vectorised, and takes thrice as long."""
    width = lanes.size
    for j in range(width):
        lanes[j] = z[0] + bias[0]
    end = z.size - z.size % width
    for low in range(0, end, width):
        keep_larger(lanes, z[low : low + width], bias[low : low + width])
    largest = lanes[0]
    for j in range(width):
        largest = max(largest, lanes[j])
    for j in range(end, z.size):
        z[j] += bias[j]
        largest = max(largest, z[j])
    return largest


@loop(apart=True)
def softmax_row(z, bias, y, lanes, slopes_too):
    """−log p of word y under softmax(z + bias); with `slopes_too` z becomes the probabilities less 1 at y."""
    largest = shift(z, bias, lanes)
    own, total = z[y], zero(largest)
    for j in range(z.size):
        e = exp(z[j] - largest)
        z[j] = e
        total += e
    if slopes_too:
        share = 1.0 / total
        for j in range(z.size):
            z[j] *= share
        z[y] -= 1.0
    return (largest - own) + log(total)


@kernel
def softmax(words, now, bias, logits, lanes, found, slopes_too, low, high):
    """`bernoulli` for words, of the steps low … high − 1, counted through time and sequences."""
    width = found.shape[1]
    for s in range(low, high):
        t, b = s // width, s % width
        n = now[t, b]
        if n < 0:
            found[t, b] = 0.0
            clear_row(logits[t, b])
        else:
            found[t, b] = softmax_row(logits[t, b], bias, words[n], lanes, slopes_too)
