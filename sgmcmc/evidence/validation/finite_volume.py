"""Finite volumes: the generator as a sparse matrix on a grid, whose null vector is compared with the target.

Independent of the pointwise residual: no derivative of the drift and none of H is taken. Cells exchange the fluxes

    J = V ρ − D ∂ρ

through their faces, by central differences (second order), V and D read off the kernel at the faces (a step of Euler's
scheme, linear in h). What flows out of a cell flows into its neighbour, nothing leaves the grid, so the matrix has a null
vector: the stationary law of the kernel's process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import Euler
from sgmcmc.integrators.state import Noise
from sgmcmc.kinetics import Gaussian, MonomialGamma
from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import Law
from sgmcmc.testing.report import Finding
from sgmcmc.testing.targets import MIXTURE, Target
from sgmcmc.testing.under_test import Kernel, Subject, laws_of
from sgmcmc.thermostats import NoseHoover

__all__ = ["Plane", "distance", "findings", "order_of_distance", "stationary"]

Array = NDArray[np.float64]
NAMES = ("theta", "p", "xi")
FINE = 0.3  # the size of p within which the softening of a = 2 acts
TAIL = 1e-9  # probability that the grid leaves out on each side


class Plane(NamedTuple):
    """A process in one or two of the variables θ, p, ξ, with the laws it should have.

    The others stand still at 0. In (p, ξ) the gradient is 0: momentum and thermostat alone, with exp(−(K + F)/T).
    """

    subject: Subject
    target: Target
    variables: tuple[int, ...]  # of 0 θ, 1 p, 2 ξ
    fine: float = np.inf  # a size of p that must be resolved, where that is less than its spread

    @property
    def laws(self) -> list[Law]:
        every = laws_of(self.subject.sampler, self.target)
        return [law for i in self.variables if (law := every[i]) is not None]

    def _step(self, points: Array, unit: float) -> Array:
        """The changes of the variables in a step of h = 1; `unit` is the value of all normals."""
        x = np.zeros((len(points), 3))
        x[:, self.variables] = points
        theta, p, xi = (x[:, [i]] for i in range(3))
        sizes = self.subject.sampler.sizes(1)
        state = self.subject.start(theta, p[:, : sizes.p], xi[:, : sizes.xi])
        gradient = self.target.gradient(theta) if 0 in self.variables else np.zeros_like(theta)
        ones = np.full_like(theta, unit)
        after = self.subject.move(state, gradient, Noise(ones, ones, ones), 0.0, 1.0, 1, 0)
        moved = [getattr(after, NAMES[i])[:, 0] - getattr(state, NAMES[i])[:, 0] for i in self.variables]
        return np.stack(moved, axis=1)

    def drift(self, points: Array) -> Array:
        return self._step(points, 0.0)

    def diffusion(self, points: Array) -> Array:
        return 0.5 * (0.5 * (self._step(points, 1.0) - self._step(points, -1.0))) ** 2


def _edges(law: Law, cells: int, fine: float) -> Array:
    """Edges that are even in y, x = m + s sinh(y): fine in the middle, long in the tails."""
    low, middle, high = law.quantile([TAIL, 0.5, 1.0 - TAIL])
    width = min(fine, 0.5 * float(np.subtract(*law.quantile([0.85, 0.15]))))
    y = np.linspace(np.arcsinh((low - middle) / width), np.arcsinh((high - middle) / width), cells + 1)
    edges: Array = middle + width * np.sinh(y)
    return edges


def _points(axes: list[Array]) -> Array:
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def _flux_matrix(plane: Plane, edges: list[Array], axis: int) -> Any:
    """dρV/dt of all cells by the fluxes along one axis, as a sparse matrix on densities."""
    from scipy import sparse

    centers = [0.5 * (e[1:] + e[:-1]) for e in edges]
    shape = tuple(len(c) for c in centers)
    faces = list(centers)
    faces[axis] = edges[axis][1:-1]
    at = _points(faces)
    v, d = plane.drift(at)[:, axis], plane.diffusion(at)[:, axis]
    along = [np.ones(n - (i == axis)) for i, n in enumerate(shape)]
    gaps = list(along)
    gaps[axis] = np.diff(centers[axis])
    gap = np.prod(_points(gaps), axis=1)
    areas = [np.diff(e) for e in edges]
    areas[axis] = along[axis]
    area = np.prod(_points(areas), axis=1)
    share = list(along)
    share[axis] = (edges[axis][1:-1] - centers[axis][:-1]) / gaps[axis]
    right = np.prod(_points(share), axis=1)  # weight of the right neighbour at the face
    from_left, from_right = (v * (1.0 - right) + d / gap) * area, (v * right - d / gap) * area
    number = np.arange(int(np.prod(shape))).reshape(shape)
    a = np.take(number, np.arange(shape[axis] - 1), axis).ravel()
    b = np.take(number, np.arange(1, shape[axis]), axis).ravel()
    rows, columns = np.concatenate((a, a, b, b)), np.concatenate((a, b, a, b))
    values = np.concatenate((-from_left, -from_right, from_left, from_right))
    return sparse.csc_matrix((values, (rows, columns)), shape=(number.size, number.size))


def stationary(plane: Plane, cells: int) -> tuple[list[Array], Array, Array]:
    """(edges, the null vector as probabilities of the cells, the target's probabilities)."""
    from scipy.sparse.linalg import spsolve

    laws = plane.laws
    fine = [plane.fine if i == 1 else np.inf for i in plane.variables]
    edges = [_edges(law, cells, size) for law, size in zip(laws, fine, strict=True)]
    matrix = sum(_flux_matrix(plane, edges, axis) for axis in range(len(edges)))
    volume = np.prod(_points([np.diff(e) for e in edges]), axis=1)
    truth = np.prod(_points([np.diff(law.cdf(e)) for law, e in zip(laws, edges, strict=True)]), axis=1)
    peak = int(np.argmax(truth))
    others = np.delete(np.arange(truth.size), peak)
    density = np.ones(truth.size)
    density[others] = spsolve(matrix[others][:, others], -matrix[others][:, [peak]].toarray()[:, 0])
    mass = density * volume
    shape = tuple(len(e) - 1 for e in edges)
    return edges, (mass / mass.sum()).reshape(shape), (truth / truth.sum()).reshape(shape)


def distance(plane: Plane, cells: int) -> float:
    """Total variation between the null vector and the target."""
    _, found, truth = stationary(plane, cells)
    return float(0.5 * np.abs(found - truth).sum())


def order_of_distance(plane: Plane, cells: tuple[int, ...]) -> tuple[float, list[float]]:
    """The exponent of the cell size in the distance, over the last two grids, and the distances."""
    found = [distance(plane, n) for n in cells]
    return float(np.log(found[-2] / found[-1]) / np.log(cells[-1] / cells[-2])), found


def planes(temperature: float = 1.0) -> dict[str, Plane]:
    """The processes of the standard evidence."""
    common: dict[str, Any] = {"temperature": temperature, "integrator": Euler(), "sigma_p": 1.3}

    def of(target: Target, variables: tuple[int, ...], fine: float = np.inf, **settings: Any) -> Plane:
        return Plane(Kernel(Sampler(0.1, **{**common, **settings})), target, variables, fine)

    thermostat = NoseHoover(0.7, "coordinate", "fixed")
    return {
        "SGLD, θ": of(MIXTURE, (0,), kinetics=None, sigma_theta=1.0, sigma_p=0.0),
        "SGHMC, (θ, p)": of(MIXTURE, (0, 1), kinetics=Gaussian(2.0)),
        "monomial gamma a = 1, (θ, p)": of(MIXTURE, (0, 1), kinetics=MonomialGamma(1.0)),
        "monomial gamma a = 2, (θ, p)": of(MIXTURE, (0, 1), FINE, kinetics=MonomialGamma(2.0)),
        "monomial gamma a = 1 with σ_θ, (θ, p)": of(MIXTURE, (0, 1), kinetics=MonomialGamma(1.0), sigma_theta=0.3),
        "SGNHT, (p, ξ)": of(MIXTURE, (1, 2), kinetics=Gaussian(2.0), thermostat=thermostat),
        "SGMGT-D a = 1, (p, ξ)": of(
            MIXTURE, (1, 2), kinetics=MonomialGamma(1.0), thermostat=thermostat, sigma_theta=0.1, sigma_xi=0.8
        ),
        "SGMGT-D a = 2, (p, ξ)": of(
            MIXTURE, (1, 2), FINE, kinetics=MonomialGamma(2.0), thermostat=thermostat, sigma_theta=0.1, sigma_xi=0.8
        ),
    }


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The distance of the null vector from the target falls with the square of the cell size."""
    fine = profile == "full"
    for T in (1.0, 2.5):
        for name, plane in planes(T).items():
            cells = (200, 400, 800) if len(plane.variables) == 1 else (96, 144, 216) if fine else (48, 72, 96)
            yield _finding(name, plane, cells, T)


def _finding(name: str, plane: Plane, cells: tuple[int, ...], temperature: float) -> Finding:
    order, found = order_of_distance(plane, cells)
    shown = ", ".join(f"{x:.1e}" for x in found)
    detail = f"T = {temperature:g}; distances {shown} on {', '.join(map(str, cells))} cells per axis"
    return Finding(
        "finite volumes: order of the distance to the target", name, order, "1.8 to 2.2", 1.8 < order < 2.2, detail
    )
