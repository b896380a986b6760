"""Step-size schedules: the step size as a function of the step, and which steps may be recorded.

A schedule is evaluated in blocks by NumPy and handed to the compiled loop as an array, so that any function of the step
will do and none is ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.compiler.field_docs import documented

__all__ = ["Constant", "Cyclical", "PolynomialDecay", "Schedule", "UserFunction", "as_schedule"]

Array = NDArray[np.float64]


class _Constant(NamedTuple):
    step_size: float


@documented
class Constant(_Constant):
    """Constant step size: h_t = step_size.

    Parameters
    ----------
    step_size : float, above 0

    Examples
    --------
    >>> sg.schedules.Constant(0.1).step_sizes(np.arange(3))
    array([0.1, 0.1, 0.1])
    """

    __slots__ = ()

    def __new__(cls, step_size: float) -> Constant:
        return super().__new__(cls, checks.number("step_size", step_size, 0.0, 1e300, open_low=True))

    @property
    def longest(self) -> float | None:
        """The longest step; None if it is not known before a run."""
        return self.step_size

    def step_sizes(self, steps: NDArray[np.int64]) -> Array:
        return np.full(steps.shape, self.step_size)


class _PolynomialDecay(NamedTuple):
    initial: float
    power: float
    offset: float


@documented
class PolynomialDecay(_PolynomialDecay):
    """Polynomial decay: h_t = initial · (1 + t/offset)^(−power).

    A power in (1/2, 1] makes Σh infinite and Σh² finite (Welling and Teh 2011).

    Parameters
    ----------
    initial : float, above 0; the first step
    power : float, from 0 to 1
    offset : float, above 0; in steps

    Examples
    --------
    >>> sg.schedules.PolynomialDecay(0.1, power=1.0, offset=10.0).step_sizes(np.array([0, 10, 30]))
    array([0.1  , 0.05 , 0.025])
    """

    __slots__ = ()

    def __new__(cls, initial: float, power: float = 1.0 / 3.0, offset: float = 1000.0) -> PolynomialDecay:
        checks.number("initial", initial, 0.0, 1e300, open_low=True)
        checks.number("power", power, 0.0, 1.0)
        checks.number("offset", offset, 0.0, 1e300, open_low=True)
        return super().__new__(cls, float(initial), float(power), float(offset))

    @property
    def longest(self) -> float | None:
        """The longest step."""
        return self.initial

    def step_sizes(self, steps: NDArray[np.int64]) -> Array:
        return np.asarray(self.initial * (1.0 + steps / self.offset) ** -self.power)


class _Cyclical(NamedTuple):
    peak: float
    period: int
    sampling: float


@documented
class Cyclical(_Cyclical):
    """Cyclical step sizes: h_t = peak/2 · (1 + cos(π r)), r = (t mod period)/period (Zhang et al. 2020).

    The first part of each cycle, with large steps, explores; draws are recorded only in the last fraction `sampling` of
    it.

    Parameters
    ----------
    peak : float, above 0; the longest step, at the start of each cycle
    period : int, at least 2; steps of a cycle
    sampling : float, above 0 and up to 1

    Examples
    --------
    >>> sg.schedules.Cyclical(peak=0.1, period=4).is_sampling(np.arange(4))
    array([False, False,  True,  True])
    """

    __slots__ = ()

    def __new__(cls, peak: float, period: int, sampling: float = 0.5) -> Cyclical:
        checks.number("peak", peak, 0.0, 1e300, open_low=True)
        checks.integer("period", period, 2)
        checks.number("sampling", sampling, 0.0, 1.0, open_low=True)
        value = super().__new__(cls, float(peak), int(period), float(sampling))
        if value.sampling_steps == 0:
            raise ValueError(
                f"sampling={checks.show(sampling)} is less than one step of the period {period}; give at least {1.0 / period:.3g}"
            )
        return value

    @property
    def sampling_steps(self) -> int:
        """How many steps of a cycle, its last ones, are recorded: floor(period · sampling), up to rounding."""
        return int(self.period * self.sampling + 1e-9)

    @property
    def longest(self) -> float | None:
        """The longest step."""
        return self.peak

    def step_sizes(self, steps: NDArray[np.int64]) -> Array:
        return np.asarray(0.5 * self.peak * (1.0 + np.cos(np.pi * (steps % self.period) / self.period)))

    def is_sampling(self, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these steps are in the sampling phase of their cycle."""
        return np.asarray((steps % self.period) >= self.period - self.sampling_steps)


@documented
class UserFunction(NamedTuple):
    """Step sizes of a function of yours: h_t = function(t).

    Parameters
    ----------
    function : callable
        Called with an array of step numbers, or, if it cannot take one, step by step.

    Examples
    --------
    >>> sg.schedules.UserFunction(lambda t: 0.1 / (1 + t)).step_sizes(np.array([0, 1]))
    array([0.1 , 0.05])
    """

    function: Callable[[Any], Any]

    @property
    def longest(self) -> float | None:
        """The longest step, which is not known before a run."""
        return None

    def step_sizes(self, steps: NDArray[np.int64]) -> Array:
        try:
            values = np.asarray(self.function(steps), dtype=np.float64)
        except Exception:
            values = np.empty(0)
        if values.shape != steps.shape:
            values = np.array([float(self.function(int(t))) for t in steps])
        if not (np.isfinite(values).all() and (values >= 0.0).all()):
            bad = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))[0])
            raise ValueError(
                f"step_size function gave {values[bad]} at step {steps[bad]}; it must be finite and not negative"
            )
        return values


@runtime_checkable
class Schedule(Protocol):
    """A schedule: a NamedTuple with `step_sizes`. One with `is_sampling`, too, says which steps may be recorded."""

    def step_sizes(self, steps: NDArray[np.int64]) -> Array:
        """The sizes of the steps with these numbers, finite and not negative."""


def as_schedule(step_size: Any) -> Any:
    """Returns a number, a schedule, or a function of the step, as a schedule.

    Parameters
    ----------
    step_size : float, schedule or callable

    Returns
    -------
    Schedule

    Examples
    --------
    >>> sg.schedules.as_schedule(0.1)
    Constant(step_size=0.1)
    """
    if isinstance(step_size, tuple) and isinstance(step_size, Schedule):
        return step_size
    if callable(step_size):
        return UserFunction(step_size)
    return Constant(step_size)


def sizes_of(schedule: Any, steps: NDArray[np.int64]) -> Array:
    """The sizes of these steps; a ValueError where a schedule of the user's gives what is no size."""
    sizes = np.asarray(schedule.step_sizes(steps), np.float64)
    if isinstance(schedule, Constant | PolynomialDecay | Cyclical | UserFunction):
        return sizes
    if sizes.shape != steps.shape:
        raise ValueError(
            f"step_size={schedule!r} gave step sizes of shape {sizes.shape} for {steps.size} steps; give one for each step"
        )
    if not (np.isfinite(sizes).all() and (sizes >= 0.0).all()):
        bad = int(np.flatnonzero(~(np.isfinite(sizes) & (sizes >= 0.0)))[0])
        raise ValueError(
            f"step_size={schedule!r} gave {sizes[bad]} at step {steps[bad]}; it must be finite and not negative"
        )
    return sizes


def longest_of(schedule: Any) -> float | None:
    """The longest step; None if it is not known before a run."""
    return getattr(schedule, "longest", None)


def has_phases(schedule: Any) -> bool:
    """Whether only some steps may be recorded."""
    return hasattr(schedule, "is_sampling")


BLOCK = 1 << 12  # steps that are looked at together
MOST = 1 << 14  # blocks without a step that may be recorded, before the search ends


def recordable_before(schedule: Any, step: int) -> int:
    """How many of the steps before this one may be recorded; all of them, if the schedule has no phases."""
    if not has_phases(schedule):
        return step
    if isinstance(schedule, Cyclical):
        period, n = schedule.period, schedule.sampling_steps
        return step // period * n + max(0, step % period - (period - n))
    whole, rest = divmod(step, BLOCK)
    inside = schedule.is_sampling(np.arange(whole * BLOCK, step)).sum() if rest else 0
    return _in_blocks(schedule, whole) + int(inside)


def _in_blocks(schedule: Any, count: int) -> int:
    """How many steps of the first `count` blocks may be recorded."""
    known = _known.setdefault(schedule, [0])
    while len(known) <= count:
        first = (len(known) - 1) * BLOCK
        known.append(known[-1] + int(schedule.is_sampling(np.arange(first, first + BLOCK)).sum()))
    return known[count]


_known: dict[Any, list[int]] = {}


def recordable(schedule: Any, begin: int, turns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The steps, from `begin` on, that are the 1st, 2nd, … that may be recorded, for these `turns`, in rising order.

    Without phases every step is. With a cycle, by counting: n of every `period` steps, the last ones, are.
    """
    if not has_phases(schedule):
        return begin - 1 + turns
    if isinstance(schedule, Cyclical):
        period, n = schedule.period, schedule.sampling_steps
        cycle, place = np.divmod(recordable_before(schedule, begin) + turns - 1, n)
        return np.asarray(cycle * period + (period - n) + place)
    found, count, first, empty = [], 0, begin, 0
    while count < turns[-1]:
        steps = np.arange(first, first + BLOCK)
        found.append(steps[schedule.is_sampling(steps)])
        empty = 0 if found[-1].size else empty + 1
        if empty == MOST:
            raise ValueError(
                f"step_size={schedule!r} has no step that may be recorded among {MOST * BLOCK} from step {first + BLOCK} back; "
                "its is_sampling must be True now and then"
            )
        count, first = count + found[-1].size, first + BLOCK
    return np.concatenate(found)[turns - 1]
