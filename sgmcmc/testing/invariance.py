"""One-step invariance: copies that start in the law they should keep are moved by one step, and must still have it.

For a test function φ the defect is E φ(Γ₁) − E φ(Γ₀), Γ₀ exact. A right splitting has a defect of order h³ (a symmetry may
kill more), Euler one of h²; a wrong sampler has h. The expectations are integrals over few dimensions (start and normals),
taken by randomised quasi-Monte Carlo: scrambled Sobol points, the starts by quantiles. So a defect is known to 1e-5 or better,
with a standard error from independent scrambles, where a long run would know it to 1e-3.

Where in a step the law is that of exp(−H/T): at the gradient, with half of the kick done. `one_step` goes from one such point
to the next in two moves, the second of size 0, which closes the kick. With noise on θ of its own (σ_θ > 0) the gradient is
taken halfway through that noise, at x = y + s n, and the noise n comes again after it: what is carried from step to step is
(y, p before the kick). Its law follows from that of x by undoing the noise, y = x − s² U'(x)/(2T), which leaves an error of
h² in the law of the start and so, since one step changes by h what is not stationary, h³ in the defect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import Euler, Noise
from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import Law, kinetic
from sgmcmc.testing.subjects import Kernel, Subject, laws_of
from sgmcmc.testing.targets import Target

__all__ = ["Defects", "Point", "one_step", "one_step_defects"]

Array = NDArray[np.float64]


class Point(NamedTuple):
    """Copies of (θ, p, ξ) at a point of symmetry; what a sampler does not have is empty."""

    theta: Array
    p: Array
    xi: Array


@lru_cache(maxsize=8)
def sobol_normals(columns: int, log2_points: int, seed: int) -> Array:
    """Standard normals from scrambled Sobol points, (2^log2_points, columns)."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    u = qmc.Sobol(columns, scramble=True, rng=np.random.default_rng([seed, columns])).random_base2(log2_points)
    normals: Array = ndtri(np.clip(u, 1e-12, 1.0 - 1e-12))
    return normals


@lru_cache(maxsize=32)
def _theta_law(target: Target, temperature: float) -> Law:
    return target.law(temperature)


def order_of(sampler: Sampler) -> int:
    """The order in h that the defect of a right sampler has at least: 2 for Euler, 3 for a splitting."""
    return 2 if isinstance(sampler.integrator, Euler) else 3


def one_step(
    subject: Subject, target: Target, h: float, normals: Array, dim: int = 1, seed: int = 0, step: int = 1
) -> tuple[Point, Point]:
    """The copies at their exact start and one step of size h later. `normals` is (copies, at least 10·dim)."""
    sampler = subject.sampler
    sizes, T = sampler.sizes(dim), sampler.temperature
    _, p_law, xi_law = laws_of(sampler, target, dim)
    kinds = [sizes.theta, sizes.p, sizes.xi, sizes.p, sizes.theta, sizes.xi, sizes.pending, sizes.p, sizes.xi]
    z = np.split(normals[:, : sum(kinds)], np.cumsum(kinds)[:-1], axis=1)
    gradient = target.gradient
    x = _theta_law(target, T).of_normal(z[0])
    p = np.zeros_like(z[1]) if p_law is None else p_law.of_normal(z[1])
    xi = np.zeros_like(z[2]) if xi_law is None else xi_law.of_normal(z[2])
    begin = x
    if sizes.pending:
        scale = np.broadcast_to(sampler.scale, (dim,))
        s = scale * np.sqrt(0.5 * sampler.sigma_theta * T * h)
        y = x - 0.5 * s**2 / T * gradient(x)
        x = y + s * z[6]
        begin = x + s * z[6] - 0.5 * h * sampler.sigma_theta * scale**2 * gradient(x)
        if sizes.p:
            p = p + 0.5 * h * scale * (gradient(y) - gradient(x))
    start = subject.start(begin, p if sizes.p else None, xi if sizes.xi else None)
    noise = Noise(*(np.array(n, order="C") for n in z[3:6]))
    after = subject.move(start, gradient(x), noise, 0.0, h, step, seed)
    if isinstance(sampler.integrator, Euler):
        return Point(x, p, xi), Point(after.theta, after.p, after.xi)
    last = Noise(np.array(z[7], order="C"), np.zeros_like(noise.theta), np.array(z[8], order="C"))
    closed = subject.move(after, gradient(after.theta), last, h, 0.0, step + 1, seed)
    return Point(x, p, xi), Point(after.theta, closed.p, closed.xi)
