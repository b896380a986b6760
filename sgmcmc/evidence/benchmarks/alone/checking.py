"""Checks of accuracy: what was drawn beside what should have been, so that no fast run is wrong.

A figure is right while it is off by no more than an allowance, for the known bias of a finite step and a noisy gradient, and
four Monte Carlo errors of its own. Errors are those of the means of blocks: chains, and long stretches of a chain, of all
runs; those of few blocks are widened as Student's t has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .problems import WELLS

__all__ = ["gaussian_check", "judge", "logistic_check", "normals_check", "variance_check", "wells_check"]

ERRORS = 4.0
STRETCH = 2500  # records of the wells: many times as long as a chain remembers


def judge(**figures: tuple[float, float, float, float]) -> dict[str, Any]:
    """name=(figure, truth, Monte Carlo error, allowance) → a dictionary with `right`, and all of it in `text`."""
    right, words = True, []
    for name, (figure, truth, error, allowance) in figures.items():
        good = bool(abs(figure - truth) <= allowance + ERRORS * error)  # a NaN is never good
        right = right and good
        words.append(f"{name.replace('_', ' ')} {figure:.3g} ± {error:.1g} ({truth:g}{'' if good else ', WRONG'})")
    values = {name: [float(v) for v in row] for name, row in figures.items()}
    return {"right": right, "text": ", ".join(words), "figures": values}


def wells_check(runs: Sequence[Any]) -> dict[str, Any]:
    """Runs (record, chain, 2) → mean of θ₁, variance of θ₁, and the temperature E[(θ − m)·∇U]/2."""
    means, weights = np.array(WELLS.means), np.array(WELLS.weights)
    center = weights @ means
    variance = weights @ (means - center) ** 2 + WELLS.scale**2
    rows, moves = [], []
    for run in runs:
        x = np.asarray(run, np.float64)
        apart = x - center
        virial = 0.5 * (apart * _wells_gradient(x)).sum(-1)
        parts = np.stack([x[..., 0], apart[..., 0] ** 2 / variance[0], virial], axis=-1)  # (record, chain, 3)
        rows.append(_block_means(parts))
        moves.append(float(np.sqrt((np.diff(x, axis=0) ** 2).sum(-1).mean())))
    mean, error = _over_blocks(np.concatenate(rows))
    return judge(
        mean=(mean[0], float(center[0]), error[0], 0.04),
        variance_ratio=(mean[1], 1.0, error[1], 0.06),
        temperature=(mean[2], 1.0, error[2], 0.06),
        move=(min(1.0, float(np.mean(moves)) / 0.1), 1.0, 0.0, 0.0),  # a chain that stands still stays in the law, too
    )


def _wells_gradient(x: Any) -> Any:
    apart = x[..., None, :] - np.array(WELLS.means)
    level = np.log(WELLS.weights) - 0.5 * (apart**2).sum(-1) / WELLS.scale**2
    share = np.exp(level - level.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    return (share[..., None] * apart).sum(-2) / WELLS.scale**2


def _block_means(x: Any) -> Any:
    """(record, chain, figure) → (block, figure)."""
    return np.concatenate([piece.mean(0) for piece in np.array_split(x, max(1, len(x) // STRETCH))])


def _over_blocks(blocks: Any) -> tuple[Any, Any]:
    """Mean over blocks and its error, so wide that ERRORS of it are as rarely exceeded as for a normal."""
    from scipy.stats import norm, t

    n = len(blocks)
    if n < 2:
        return blocks.mean(0), np.full(blocks.shape[1:], np.inf)
    widened = float(t.isf(norm.sf(ERRORS), n - 1)) / ERRORS
    return blocks.mean(0), widened * blocks.std(0, ddof=1) / np.sqrt(n)


def logistic_check(runs: Sequence[Any], mean: Any, sd: Any) -> dict[str, Any]:
    """Runs (draw, chain, d) against the posterior's mean and sd: rms error of the mean in sd, and the mean ratio of sd.

    A block is a chain of a run: within one, draws depend on each other for most of its length.
    """
    scaled = [(np.asarray(run, np.float64) - mean) / sd for run in runs]
    means = np.concatenate([z.mean(0) for z in scaled])  # (block, d)
    squares = np.concatenate([(z**2).mean(0) for z in scaled]).mean(1)  # (block,), mean over the coefficients
    spread = float(np.mean([z.std(0).mean() for z in scaled]))
    off, error = _over_blocks(means)
    square, square_error = _over_blocks(squares)
    ratio = float(np.sqrt(square))
    rms = float(np.sqrt((off**2).mean()))
    return judge(
        mean_error=(rms, 0.0, float(np.sqrt((error**2).mean())), 0.1),
        sd_ratio=(ratio, 1.0, float(square_error) / (2.0 * ratio), 0.1),
        move=(min(1.0, spread / 0.02), 1.0, 0.0, 0.0),
    )


def gaussian_check(theta: Any) -> dict[str, Any]:
    """θ (…) that should be standard normal, one independent number each."""
    return variance_check(theta=theta)


def variance_check(**arrays: Any) -> dict[str, Any]:
    """Arrays of independent numbers that should have variance 1."""
    return judge(
        **{
            f"variance_of_{name}": (float(np.var(x, dtype=np.float64)), 1.0, float(np.sqrt(2.0 / np.size(x))), 0.1)
            for name, x in arrays.items()
        }
    )


def normals_check(z: Any) -> dict[str, Any]:
    """Independent standard normals: mean, variance and fourth moment, with no allowance."""
    x = np.asarray(z, np.float64).ravel()
    n = x.size
    return judge(
        mean=(float(x.mean()), 0.0, n**-0.5, 0.0),
        variance=(float((x**2).mean()), 1.0, (2.0 / n) ** 0.5, 0.0),
        fourth_moment=(float((x**4).mean()), 3.0, (96.0 / n) ** 0.5, 0.0),
    )
