"""Lanes: small chains side by side, so that vectors run across chains.

Coordinate c of the chain in lane l stands at c·width + l. Every letter of a step is a loop over the coordinates of one chain;
over such an array the same loop takes the same step for all chains at once. What is left to say is where sums over coordinates
are taken: here element by element (`ManyChains`), and added up once in a while.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import implements
from sgmcmc.integrators.euler import Euler
from sgmcmc.integrators.state import Dynamics, note
from sgmcmc.kinetics import Overdamped
from sgmcmc.thermostats import couples_coordinates, relaxation, relaxation_of

__all__ = ["LARGEST", "ManyChains", "fits_lanes", "in_lanes"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

LARGEST = 16  # coordinates; longer chains fill the vectors by themselves


class ManyChains(NamedTuple):
    """The arrays are those of many chains side by side."""

    virial: Any  # takes up p K'(p) of every step, element by element
    relaxation: Any  # the last time over which ξ relaxed, and the two numbers that belong to it


def fits_lanes(dynamics: Dynamics, dim: int) -> bool:
    """Whether chains of such a sampler may stand side by side: nothing in a step but measurements sums over coordinates.

    It must not depend on the number of chains: one chain alone has the same bits as among many.
    """
    d = dynamics
    summed = isinstance(d.integrator, Euler) and not isinstance(
        d.kinetics, Overdamped
    )  # it returns a sum over coordinates
    alone = not any(couples_coordinates(part) for part in (d.thermostat, d.integrator, d.scale))
    return dim <= LARGEST and alone and not summed and all(_fits(p, dim) for p in (d.thermostat, d.integrator, d.scale))


def _fits(part: Any, dim: int) -> bool:
    """Whether all arrays in a part have one number per coordinate."""
    if isinstance(part, tuple):
        return all(_fits(value, dim) for value in part)
    return not isinstance(part, np.ndarray) or part.shape == (dim,)


def in_lanes(dynamics: Dynamics, width: int, virial: NDArray[Any]) -> Dynamics:
    """The same dynamics for chains side by side; `virial` takes up p K'(p) of every step."""
    parts = {name: _repeated(getattr(dynamics, name), width) for name in ("thermostat", "integrator", "scale")}
    return dynamics._replace(**parts, layout=ManyChains(virial, np.full(3, np.nan, virial.dtype)))


def _repeated(part: Any, width: int) -> Any:
    if isinstance(part, tuple):
        return type(part)._make(_repeated(value, width) for value in part)  # type: ignore[attr-defined]
    return np.repeat(part, width) if isinstance(part, np.ndarray) else part


@implements(note, ManyChains)
def _(layout, i, total, value, first, share):
    layout.virial[i] = share * value if first else layout.virial[i] + share * value
    return total


@implements(relaxation_of, ManyChains)
def _(layout, v, sigma_xi, temperature, tau):
    # Two exponentials, two divisions and a root for what is mostly the same in every step.
    last = layout.relaxation
    if last[0] != tau:
        last[0] = tau
        last[1], last[2] = relaxation(v, sigma_xi, temperature, tau)
    return last[1], last[2]
