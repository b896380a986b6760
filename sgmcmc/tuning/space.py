"""The space of settings: for every parameter a range, choices, or one value, and points that fill it evenly.

A pair of numbers is a range, of which logarithms are taken (of whole numbers, only whole ones are tried); a list is choices;
anything else is a fixed value. `OfEdge` is a range of step sizes in units of the longest stable one, which differs between
settings.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.bias.stability import longest_step
from sgmcmc.compiler.field_docs import documented
from sgmcmc.potentials import rows_of
from sgmcmc.samplers import Sampler

__all__ = ["OfEdge", "Setting", "Space", "default_space"]

Setting = dict[str, Any]


@documented
class OfEdge(NamedTuple):
    """Step sizes from `low` to `high` times the longest stable one.

    Parameters
    ----------
    low, high : float

    Examples
    --------
    >>> sg.tuning.OfEdge()
    OfEdge(low=0.02, high=0.7)
    """

    low: float = 0.02
    high: float = 0.7


_KNOWN: dict[str, Any] = {
    "step_size": OfEdge(),
    "a": [1.0, 2.0],  # a step with any other takes ten times as long
    "softening": (1.5, 4.0),
    "friction": (0.3, 10.0),
    "diffusion": (0.3, 10.0),
    "sigma_p": (0.3, 10.0),
    "sigma_theta": (0.01, 0.5),
    "sigma_xi": (0.01, 0.5),
    "resample_momentum": [30, 100, 300],
    "resample_thermostat": [30, 100, 300],
}
_BATCHES = (16, 32, 64, 128, 256, 512, 1024)


def default_space(make: Callable[..., Sampler], model: Any) -> dict[str, Any]:
    """What is tuned by default: the parameters of `make` that are known here, and the batch size."""
    try:
        names = list(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        names = ["step_size"]
    found = {name: _KNOWN[name] for name in names if name in _KNOWN}
    n = rows_of(model)
    if n > 0:
        found["batch_size"] = [b for b in _BATCHES if 2 * b <= n] + ([None] if n <= 2 * _BATCHES[-1] else [])
    return found


class Space:
    """Settings as points of the unit cube; `make` turns one into a sampler."""

    def __init__(self, make: Callable[..., Sampler], given: Mapping[str, Any], steepest: float, fixed: Setting) -> None:
        self.make, self.steepest = make, steepest
        self.free = {name: _checked(name, value) for name, value in given.items() if _is_free(value)}
        self.fixed = fixed | {name: _held(value) for name, value in given.items() if not _is_free(value)}
        if len(self.free) == 0:
            raise ValueError(
                "space has nothing to tune: give a range (low, high) or a list of choices for some parameter"
            )

    def points(self, count: int, seed: int) -> NDArray[np.float64]:
        """`count` points of a scrambled Sobol sequence."""
        from scipy.stats import qmc

        cube = qmc.Sobol(len(self.free), seed=seed).random_base2(max(count - 1, 1).bit_length())[:count]
        return np.asarray(cube, np.float64)

    def near(self, point: NDArray[np.float64], count: int, width: float, seed: int) -> NDArray[np.float64]:
        """Points around one; what would leave the cube is reflected."""
        moved = point + width * np.random.default_rng([seed, 1]).standard_normal((count, point.size))
        moved = np.abs(moved)
        return np.where(moved > 1.0, np.maximum(2.0 - moved, 0.0), moved)

    def setting(self, point: NDArray[np.float64]) -> Setting:
        """The parameters at a point of the cube; a step size of `OfEdge` follows from the others."""
        found = dict(self.fixed)
        edge = None
        for (name, value), u in zip(self.free.items(), point, strict=True):
            if isinstance(value, OfEdge):
                edge, found[name] = (name, _between(value, float(u))), 1e-12
            else:
                found[name] = _at(value, float(u))
        if edge is not None:
            found[edge[0]] = float(f"{edge[1] * longest_step(self.sampler(found), self.steepest):.4g}")
        return found

    def shorter(self, setting: Setting, factor: float = 0.5) -> Setting | None:
        """The setting with half the step (or `factor` times), or the next shorter choice of the space; None if there is none."""
        value, h = self.free.get("step_size"), setting.get("step_size")
        if value is None or not isinstance(h, int | float):
            return None
        if isinstance(value, list):
            lower = [v for v in value if isinstance(v, int | float) and v < h]
            return setting | {"step_size": max(lower)} if lower else None
        edge = longest_step(self.sampler(setting), self.steepest) if isinstance(value, OfEdge) else 1.0
        low = float(value[0]) * edge
        return setting | {"step_size": float(f"{max(factor * h, low):.4g}")} if h > 1.001 * low else None

    def sampler(self, setting: Setting) -> Sampler:
        """The sampler of a setting; that it is stiff is not said here, as it loses by its score."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = self.make(**{k: v for k, v in setting.items() if k != "batch_size"})
        if not isinstance(made, Sampler):
            raise TypeError(
                f"sampler made {checks.show(made)}, which is not a Sampler; give SGMGTD or a function like it"
            )
        return made


def _is_free(value: Any) -> bool:
    return isinstance(value, list | tuple) and not (isinstance(value, list) and len(value) == 1)


def _held(value: Any) -> Any:
    """A value, or the only choice of a list."""
    return value[0] if isinstance(value, list) else value


def _checked(name: str, value: Any) -> Any:
    if isinstance(value, list):
        if len(value) == 0:
            raise ValueError(f"space[{name!r}] has no choices; give some, or one value to hold it at")
        return value
    low, high = (checks.number(f"space[{name!r}]", v, 0.0, open_low=True) for v in _pair(name, value))
    if not low < high or math.isinf(high):
        raise ValueError(f"space[{name!r}]={value!r} is no range; give (low, high) with 0 < low < high")
    return value


def _pair(name: str, value: Any) -> Any:
    if len(value) != 2:
        raise ValueError(f"space[{name!r}]={checks.show(value)} is no range; give (low, high), or a list of choices")
    return value


def _between(value: Any, u: float) -> float:
    return float(value[0] * (value[1] / value[0]) ** u)


def _at(value: Any, u: float) -> Any:
    if isinstance(value, list):
        return value[min(int(u * len(value)), len(value) - 1)]
    whole = all(isinstance(v, int) for v in value)
    return round(_between(value, u)) if whole else float(f"{_between(value, u):.4g}")
