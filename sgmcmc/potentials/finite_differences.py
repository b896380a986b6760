"""Is the gradient the derivative of the energy? Central differences, extrapolated to step size zero, say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import integer, number
from sgmcmc.potentials.contract import check_model, dim_of, energy_of, gradient_of, point
from sgmcmc.potentials.wrapped import Potential, PythonPotential

__all__ = ["check_gradient"]

_LEVELS = 10  # steps h, h/2, …, h/512: a length scale of 1e-3 in θ is still resolved


def check_gradient(
    model: Any,
    theta: ArrayLike | None = None,
    energy: Callable[..., Any] | None = None,
    rows: ArrayLike | None = None,
    tolerance: float = 1e-5,
    seed: int = 0,
) -> float:
    """Compare the gradient with finite differences of the energy; ValueError where they disagree.

    It takes 20 evaluations of the energy per coordinate.

    Parameters
    ----------
    model : any model
    theta : array, optional
        Where to look; None for a random point.
    energy : callable, optional
        For a Potential ``(theta, data, rows)`` or ``(theta)``, the sum of −log p(y_i | θ) without the prior; for any
        other model ``(theta)``, the whole of U. None for the model's own.
    rows : array of int, optional
        Look at the estimate from these rows; None for all.
    tolerance : float
        The largest relative error to accept. A coordinate's error is relative to its gradient, or to a thousandth of
        the largest gradient of all if that is more.
    seed : int
        Of the random point.

    Returns
    -------
    float
        The largest relative error.

    Examples
    --------
    >>> sg.check_gradient(sg.models.FiveWell()) < 1e-5
    True
    """
    tolerance = number("tolerance", tolerance, 0.0, open_low=True)
    integer("seed", seed, 0)
    if not isinstance(model, PythonPotential):
        check_model(model)
    at = np.random.default_rng(seed).normal(0.0, 0.5, dim_of(model)) if theta is None else point(model, theta)
    potential = _potential(model, energy, rows)
    given = model.gradient(at, rows) if isinstance(model, PythonPotential) else gradient_of(model, at, rows)
    level = potential(at)
    if not (np.isfinite(level) and np.isfinite(given).all()):
        raise ValueError(f"energy {level} or gradient {given} is not finite at theta={at}; choose another theta")
    found, doubt = np.array([_derivative(potential, at, j) for j in range(at.size)]).T
    scale = np.maximum(np.maximum(abs(given), abs(found)), 1e-3 * abs(found).max())
    _refuse_rough_energy(doubt, np.maximum(tolerance * scale, 1e-9 * (1.0 + abs(level))))
    gap = np.maximum(abs(given - found) - doubt, 0.0)
    error = np.divide(gap, scale, out=np.zeros_like(gap), where=gap > 0.0)
    worst = int(error.argmax())
    if error[worst] > tolerance:
        raise ValueError(
            f"gradient[{worst}] is {given[worst]:.10g}, but finite differences of the energy give {found[worst]:.10g} "
            f"(relative error {error[worst]:.2g}, tolerance {tolerance:g}); "
            f"{int((error > tolerance).sum())} of {at.size} coordinates disagree"
        )
    return float(error[worst])


def _potential(model: Any, energy: Callable[..., Any] | None, rows: Any) -> Callable[[NDArray[np.float64]], float]:
    if isinstance(model, Potential):
        function = model._functions()[1] if energy is None else energy
        return lambda at: model.energy_by(function, at, rows)
    check_model(model)
    if energy is None:
        return lambda at: energy_of(model, at, rows)
    if rows is not None:
        raise ValueError(
            f"rows and energy cannot be combined for {type(model).__name__}: energy(theta) is the whole of U"
        )
    return lambda at: float(energy(at))


def _derivative(
    potential: Callable[[NDArray[np.float64]], float], at: NDArray[np.float64], j: int
) -> tuple[float, float]:
    """∂U/∂θ_j and how far to trust it: Richardson extrapolation of central differences (Ridders 1982)."""
    best, doubt, previous = np.nan, np.inf, np.empty(0)
    for level in range(_LEVELS):
        h = 0.05 * max(1.0, abs(at[j])) / 2.0**level
        ahead, behind = at.copy(), at.copy()
        ahead[j] += h
        behind[j] -= h
        current = np.empty(level + 1)
        current[0] = (potential(ahead) - potential(behind)) / (ahead[j] - behind[j])
        for m in range(1, level + 1):
            current[m] = current[m - 1] + (current[m - 1] - previous[m - 1]) / (4.0**m - 1.0)
            spread = max(abs(current[m] - current[m - 1]), abs(current[m] - previous[m - 1]))
            if spread < doubt:
                best, doubt = current[m], spread
        previous = current
    return float(best), float(doubt)


def _refuse_rough_energy(doubt: NDArray[np.float64], allowed: NDArray[np.float64]) -> None:
    worst = int((doubt / allowed).argmax())
    if not doubt[worst] <= allowed[worst]:
        raise ValueError(
            f"finite differences of the energy do not settle at coordinate {worst} (± {doubt[worst]:.2g}); "
            "give an energy that is smooth and not random, or another theta"
        )
