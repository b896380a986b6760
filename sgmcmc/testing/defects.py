"""Defects of invariance with their errors, and the power of h that they follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing.statistics import Slope

__all__ = ["POWERS", "Defects", "fit_power"]

Array = NDArray[np.float64]


class Defects(NamedTuple):
    """E φ(Γ₁) − E φ(Γ₀) in units of φ's standard deviation: one row per scramble, one column per φ."""

    names: tuple[str, ...]
    values: Array

    @property
    def mean(self) -> Array:
        mean: Array = self.values.mean(axis=0)
        return mean

    @property
    def error(self) -> Array:
        error: Array = self.values.std(axis=0, ddof=1) / np.sqrt(len(self.values))
        return error


POWERS = np.arange(0.2, 6.0, 0.01)


def fit_power(h: Array, defects: list[Defects]) -> Slope:
    """k in D_φ(h) = A_φ h^k, one k for all φ: least squares over k and the A_φ; the scrambles give the interval (jackknife).

    Unlike a line through log |D| it is not drawn aside by defects that are not resolved. Three per cent of each defect are
    added to its error, for the higher orders: else the largest h alone would decide.
    """
    from scipy.stats import t as student

    values = np.array([d.values for d in defects])  # (h, scramble, φ)
    mean, error = values.mean(axis=1), np.array([d.error for d in defects])
    weight = 1.0 / np.maximum(error**2 + (0.03 * mean) ** 2, 1e-300)
    shapes = h[None, :, None] ** POWERS[:, None, None]
    norm = (weight * shapes**2).sum(axis=1)

    def best(y: Array) -> float:
        explained = ((weight * shapes * y).sum(axis=1) ** 2 / norm).sum(axis=1)
        return float(POWERS[int(np.argmax(explained))])

    n = values.shape[1]
    left_out = np.array([best((n * mean - values[:, i]) / (n - 1)) for i in range(n)])
    spread = float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))
    wide = float(student.ppf(0.975, n - 1)) * spread
    return Slope(best(mean), best(mean) - wide, best(mean) + wide)
