"""Modes: which one a draw belongs to, how often a chain changes, and whether each has the mass it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.comparison.reference import wells_at
from sgmcmc.models.five_well import FiveWell
from sgmcmc.models.mixture import GaussianMixture

__all__ = ["Modes", "read_modes", "visits"]

Array = NDArray[np.float64]


class Modes(NamedTuple):
    """`shares` gives P(mode | θ) at draws (…, dim), as an array (…, mode); `masses` are their expectations, if known."""

    shares: Callable[[Array], Array]
    masses: Array | None


def read_modes(modes: Any, model: Any, dim: int, temperature: float) -> Modes | None:
    """The modes of a model that has them, or the nearest of the centres given, (mode, dim); else None."""
    if modes is not None:
        centres = checks.finite_array("modes", modes, ndim=2)
        if centres.shape[1] != dim or len(centres) < 2:
            raise ValueError(f"modes has shape {centres.shape}; give at least two centres, (modes, {dim})")
        return Modes(
            lambda x: _one_hot(((x[..., None, :] - centres) ** 2).sum(axis=-1).argmin(axis=-1), len(centres)), None
        )
    if isinstance(model, FiveWell):
        barriers = np.array(model.BARRIERS)
        inside: Callable[[Array], Array] = lambda x: _one_hot(np.searchsorted(barriers, x[..., 0]), barriers.size + 1)  # noqa: E731
        return Modes(inside, wells_at(temperature).masses)
    if isinstance(model, GaussianMixture) and len(model.means) > 1:
        # E[P(k | θ)] is the weight of component k exactly, also where components overlap.
        return Modes(lambda x: _posterior_shares(model, x), model.weights if temperature == 1.0 else None)
    return None


def _one_hot(label: NDArray[np.intp], count: int) -> Array:
    return np.eye(count)[label]


def _posterior_shares(model: Any, x: Array) -> Array:
    squares = ((x[..., None, :] - model.means) ** 2).sum(axis=-1)
    levels = model.log_peaks - 0.5 * model.precisions * squares
    weights = np.exp(levels - levels.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


class Visits(NamedTuple):
    """Modes that some chain was in, moves from one to another between draws, distance of the masses in total variation."""

    modes: int
    mode_changes: int
    mode_error: float


def visits(modes: Modes, draws: Array) -> Visits:
    """Of draws (chain, draw, dim)."""
    shares = modes.shares(draws)
    label = shares.argmax(axis=-1)
    changes = int((label[:, 1:] != label[:, :-1]).sum())
    if modes.masses is None:
        return Visits(np.unique(label).size, changes, np.nan)
    found = shares.reshape(-1, shares.shape[-1]).mean(axis=0)
    return Visits(np.unique(label).size, changes, float(0.5 * np.abs(found - modes.masses).sum()))
