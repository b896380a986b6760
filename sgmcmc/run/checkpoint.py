"""Checkpoints: all that a run needs to continue, in one small file that is replaced as a whole.

The file holds the states of the chains and the identity of the run. Draws are in a file beside it that is only appended to, so
a checkpoint costs the same at the end of a run as at its beginning. It holds the number of draws of each chain and their
checksums; rows after those are ignored.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import State
from sgmcmc.run.build_trace import versions
from sgmcmc.run.coordinate_temperatures import tracked_coordinates
from sgmcmc.run.draw_file import DrawFile
from sgmcmc.run.identity import difference
from sgmcmc.run.job import Chain
from sgmcmc.run.old_formats import with_variance
from sgmcmc.run.plan import Plan
from sgmcmc.run.recording import Tally
from sgmcmc.trace import archive

__all__ = ["Checkpoint", "Saved", "draws_beside", "load", "restore"]

log = logging.getLogger("sgmcmc")
FORMAT, VERSION = "sgmcmc.checkpoint", 1
_NUMBERS = ("number", "step", "before", "fresh", "diverged")


class Saved(NamedTuple):
    """The content of a checkpoint."""

    path: Path
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def seed(self) -> int:
        return int(self.header["identity"]["seed"])


def draws_beside(path: Path, saved: Saved | None = None) -> Path:
    """The file of draws of a run with this checkpoint, unless out= is given.

    The name is made of the whole name of the checkpoint, as ``lr0.001`` and ``lr0.002`` have the same stem. Older versions took
    the stem, and their checkpoints do not name the file; draws that are there already stay there.
    """
    own, old = path.with_name(f"{path.name}.draws.npy"), path.with_name(f"{path.stem}.draws.npy")
    if saved is None or not np.any(saved.arrays.get("draw_counts", 0)):
        return own
    return old if saved.header.get("draws", old.name) == old.name else own


def load(path: Path) -> Saved:
    """Read a checkpoint; ValueError for any other file."""
    arrays, header = archive.read(path, FORMAT, VERSION, "a whole checkpoint")
    known = header.get("identity")
    if not isinstance(known, dict) or not str(known.get("seed", "")).isdecimal():
        raise ValueError(f"{path} is not a whole checkpoint: it does not say whose it is")
    return Saved(path, header, arrays)


# ---- saving -------------------------------------------------------------------------------------------------------------


class Checkpoint:
    """The checkpoint of a running run: the `Saver` of the scheduler."""

    def __init__(
        self, path: Path, every: float, known: dict[str, str], chains: list[Chain], file: DrawFile | None
    ) -> None:
        self.path, self.every, self.known, self.chains, self.file = path, every, known, chains, file
        self.last, self.took, self.saves = time.monotonic(), 0.0, 0

    def due(self) -> bool:
        """Whether it is time to save: not before `every` seconds, and for at most a tenth of the time."""
        return time.monotonic() - self.last >= max(self.every, 10.0 * self.took)

    def save(self) -> None:
        """Save; an error is logged, as a full disk should not end a run."""
        try:
            self.save_or_fail()
        except OSError as error:
            log.warning("checkpoint %s could not be written (%s); the one before stays", self.path, error)
            self.last = time.monotonic()

    def save_or_fail(self) -> None:
        begin = time.monotonic()
        if self.file is not None:
            self.file.flush()
        header = {"format": FORMAT, "version": VERSION, "identity": self.known, "versions": versions()}
        header["draws"] = None if self.file is None else self.file.path.name
        archive.write(self.path, header, _arrays(self.chains, self.file))
        self.last = time.monotonic()
        self.took, self.saves = self.last - begin, self.saves + 1
        log.info("checkpoint %s: step %d, %.2g s", self.path, min(c.step for c in self.chains), self.took)


def _arrays(chains: list[Chain], file: DrawFile | None) -> dict[str, Any]:
    found: dict[str, Any] = {name: [getattr(c.state, name) for c in chains] for name in State._fields}
    found |= {"origin": [c.origin for c in chains], "sums": [c.sums for c in chains]}
    found |= {name: np.array([getattr(c, name) for c in chains]) for name in _NUMBERS[:4]}
    found["diverged"] = np.array([-1 if c.diverged is None else c.diverged for c in chains])
    if chains[0].coordinate_sums is not None:
        found["terms"] = [_like(c.coordinate_sums, chains[0].coordinate_sums) for c in chains]
    if chains[0].segment_sums is not None:  # files of older versions have none
        found["watch"] = [_like(c.segment_sums, chains[0].segment_sums) for c in chains]
    if chains[0].tally is not None:
        found |= {f"tally_{n}": [getattr(c.tally, n) for c in chains] for n in ("mean", "variance")}
        found["tally_count"] = np.array([c.tally.count for c in chains if c.tally is not None])
    if file is not None:
        found |= {"draw_counts": file.counts, "draw_sums": file.sums}
    return found


def _like(own: NDArray[np.float64] | None, other: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.zeros_like(other) if own is None else own


# ---- resuming ----------------------------------------------------------------------------------------------------------


def restore(saved: Saved, known: dict[str, str], chains: list[Chain], plan: Plan, file: DrawFile | None) -> None:
    """Move chains from their start to their saved states; ValueError if these are not the chains of the checkpoint."""
    arrays, there = saved.arrays, dict(saved.header["identity"])
    if "variance" not in arrays:  # of an older version, whose digest of the start is of other arrays
        sigma_p, temperature = (float(known[f"sampler.{name}"]) for name in ("sigma_p", "temperature"))
        adaptive = float(known.get("sampler.thermostat.adaptive", 0.0)) > 0.0
        arrays = with_variance(arrays, sigma_p, temperature, adaptive)
        there["init"] = known["init"]
    other = difference(there, known)
    if other is not None:
        raise ValueError(
            f"checkpoint='{saved.path}' belongs to another run: {other}; give what it had, or another file"
        )
    if saved.header.get("versions") != versions():
        log.warning(
            "%s was written by %s: later draws may differ in the last digits", saved.path, saved.header.get("versions")
        )
    try:
        _restore(arrays, chains, plan)
        if file is not None:
            counts, sums = saved.arrays["draw_counts"], saved.arrays["draw_sums"]
            _check_counts(counts, chains, plan)
            file.reopen(counts, sums)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"checkpoint='{saved.path}' cannot be gone on from: {archive.reason(error)}") from error
    log.info("going on from %s at step %d", saved.path, min(c.step for c in chains))


def _restore(arrays: dict[str, NDArray[Any]], chains: list[Chain], plan: Plan) -> None:
    numbers = {name: _taken(arrays, name, (len(chains),)) for name in _NUMBERS}
    end = plan.first + plan.steps
    for i, chain in enumerate(chains):
        step, diverged = int(numbers["step"][i]), int(numbers["diverged"][i])
        if numbers["number"][i] != chain.number or not chain.step <= step <= end:
            raise ValueError(f"it has chain {numbers['number'][i]} in step {step}, which is not one of this run")
        for name in State._fields:
            own = getattr(chain.state, name)
            own[:] = _taken(arrays, name, (len(chains), own.size), own.dtype)[i]
        chain.origin[:] = _taken(arrays, "origin", (len(chains), chain.origin.size), chain.origin.dtype)[i]
        chain.sums[:] = _taken(arrays, "sums", (len(chains), 3), np.float64)[i]
        chain.step, chain.before = step, float(numbers["before"][i])
        chain.fresh = bool(numbers["fresh"][i])
        chain.diverged = None if diverged < 0 else diverged
        _restore_extras(arrays, chain, i, len(chains), plan)


def _restore_extras(arrays: dict[str, NDArray[Any]], chain: Chain, i: int, chains: int, plan: Plan) -> None:
    if "terms" in arrays:
        both = chain.state.p.size + chain.state.theta.size
        chain.coordinate_sums = _taken(arrays, "terms", (chains, both), np.float64)[i].copy()
    if "watch" in arrays:
        count = tracked_coordinates(chain.state.theta.size, chains, plan.segments).size
        chain.segment_sums = _taken(arrays, "watch", (chains, plan.segments, 3 * count + 1), np.float64)[i].copy()
    if chain.tally is not None:
        shape = (chains, chain.tally.mean.size)
        mean, variance = (_taken(arrays, f"tally_{n}", shape, np.float64)[i].copy() for n in ("mean", "variance"))
        chain.tally = Tally(mean, variance, int(_taken(arrays, "tally_count", (chains,))[i]))
        if chain.tally.count != plan.recorded_before(chain.step):
            raise ValueError(f"its moments are of {chain.tally.count} draws, not of those up to step {chain.step}")


def _taken(arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...], dtype: Any = None) -> NDArray[Any]:
    """One array, of the shape and dtype that kernels expect; they do not check sizes."""
    array = arrays[name]
    if array.shape != shape or (dtype is not None and array.dtype != dtype):
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape} there; this run wants shape {shape}")
    return array


def _check_counts(counts: NDArray[Any], chains: list[Chain], plan: Plan) -> None:
    wanted = [plan.recorded_before(c.step) for c in chains]
    if counts.shape != (len(chains),) or counts.tolist() != wanted:
        raise ValueError(f"it vouches for {counts.tolist()[:8]} draws, and its steps make {wanted[:8]}")
