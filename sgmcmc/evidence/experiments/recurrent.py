"""One run of a recurrent network: epochs of minibatches, a test after each, and a checkpoint that a stopped run goes on from.

Rows are taken in an order that `seed` and the number of the epoch decide, each once per epoch; the gradient of U is estimated
from them without bias but for its norm, which is bounded (per step of the data) as is usual for recurrent networks; the run
counts how often. After each epoch the probabilities that the draw at hand gives to the validation and the test data are added
to an average over draws, from the epoch `collect` on; before that the draw stands alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.evidence.experiments import kept
from sgmcmc.integrators.state import State
from sgmcmc.samplers import ChainState

__all__ = ["Plan", "Predictive", "run_epochs"]

Array = NDArray[Any]
BETWEEN = 20.0  # seconds between checkpoints, at least
CLIP = 5.0  # the largest norm of the gradient of the mean of −log p


class Plan(NamedTuple):
    """What a run is: how long, in what pieces, from which epoch on draws are averaged, how often within an epoch it is tested."""

    epochs: int
    batch: int
    seed: int
    collect: int
    looks: int = 1
    most: int | None = None  # steps per epoch; None for all rows


class Predictive:
    """The average over draws of the probability of every step; of music also that of every key."""

    def __init__(self, test: Any) -> None:
        self.total, self.draws = np.zeros(test.steps), 0
        self.keys = np.zeros(test.x.shape if test.words is None else (0, 1), np.float32)

    def look(self, test: Any, theta: Array, add: bool) -> float:
        """The loss of a draw, per step; it joins the average if it is finite, and wanted."""
        seen = np.zeros_like(self.keys)
        losses = test.losses(theta, keys=seen if seen.size else None)
        if not np.isfinite(losses).all():
            return np.inf
        if add:
            self.total += np.exp(-losses)
            self.keys += seen
            self.draws += 1
        return float(losses.mean())

    def loss(self) -> float:
        """−log of the average, per step."""
        with np.errstate(divide="ignore"):
            return float(-np.log(self.total / self.draws).mean())

    def loss_of_keys(self, frames: Array) -> float:
        """−log p of frames whose keys are independent, each with its average probability; NaN where there are no keys."""
        if self.keys.size == 0 or self.draws == 0:
            return float("nan")
        p = np.clip(self.keys / self.draws, 1e-7, 1.0 - 1e-7)
        return float(-np.log(np.where(frames > 0, p, 1.0 - p)).sum(axis=1, dtype=np.float64).mean())


class _Run:
    """What a run has come to, in a form that a file can hold."""

    def __init__(self, sampler: Any, theta: Array, seed: int, tests: tuple[Any, Any]) -> None:
        self.state = sampler.init(theta, seed=seed)
        self.averages = [Predictive(test) for test in tests]
        self.curve: list[tuple[float, ...]] = []
        self.clipped, self.taken, self.epoch, self.seconds = 0, 0, 0, 0.0

    def packed(self) -> dict[str, Any]:
        state = self.state
        found: dict[str, Any] = {
            name: getattr(self, name) for name in ("curve", "clipped", "taken", "epoch", "seconds")
        }
        found["averages"] = [(a.total, a.draws, a.keys) for a in self.averages]
        if isinstance(state, ChainState):
            found["state"] = (tuple(np.asarray(a) for a in state.arrays), state.step, state.before)
        else:
            found["state"] = (state.theta, state.squares)
        return found

    def unpack(self, found: dict[str, Any]) -> None:
        for name in ("curve", "clipped", "taken", "epoch", "seconds"):
            setattr(self, name, found[name])
        for average, (total, draws, keys) in zip(self.averages, found["averages"], strict=True):
            average.total, average.draws, average.keys = total, draws, keys
        if isinstance(self.state, ChainState):
            arrays, step, before = found["state"]
            self.state = self.state._replace(arrays=State(*arrays), step=step, before=before)
        else:
            self.state.theta[:], self.state.squares[:] = found["state"]


def run_epochs(
    model: Any,
    tests: tuple[Any, Any],
    sampler: Any,
    plan: Plan,
    checkpoint: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run, or go on with, `plan.epochs` epochs. The curve is (epoch, validation loss of draw and of average, the same of test).

    A run that diverged ends early; its last loss is infinite.
    """
    theta = model.init(plan.seed).astype(np.float32)
    run = _Run(sampler, theta, plan.seed, tests)
    if checkpoint is not None and checkpoint.exists():
        found = kept.load(checkpoint)
        if found["epoch"] <= plan.epochs:
            run.unpack(found)
        else:
            checkpoint = None  # a longer run, which stays as it is; this one begins afresh
    gradient, saved = np.zeros_like(theta), time.monotonic()
    while run.epoch < plan.epochs and not (run.curve and not np.isfinite(run.curve[-1]).all()):
        begin = time.process_time()
        _epoch(model, sampler, run, plan, tests, gradient)
        run.epoch += 1
        run.seconds += time.process_time() - begin
        if checkpoint is not None and (run.epoch == plan.epochs or time.monotonic() - saved > BETWEEN):
            kept.save(checkpoint, run.packed())
            saved = time.monotonic()
        if tell is not None:
            tell(f"epoch {run.epoch}, validation {run.curve[-1][2]:.4f}")
    last = run.curve[-1]
    return {
        "curve": run.curve, "valid": last[2], "test": last[4], "alone": last[3], "epochs": run.epoch,
        "clipped": run.clipped / max(1, run.taken), "seconds": run.seconds, "steps": run.taken,
        "draws": run.averages[0].draws, "keys": run.averages[1].loss_of_keys(tests[1].x),
    }  # fmt: skip


def _epoch(model: Any, sampler: Any, run: _Run, plan: Plan, tests: tuple[Any, Any], gradient: Array) -> None:
    """One epoch, and its tests; one that diverges is left with infinite losses."""
    order = np.random.default_rng([plan.seed, 17, run.epoch]).permutation(model.n_rows)
    batches = [order[k : k + plan.batch] for k in range(0, order.size, plan.batch)][: plan.most]
    marks = {round((k + 1) * len(batches) / plan.looks) for k in range(plan.looks)}
    for count, rows in enumerate(batches, 1):
        model.estimate(run.state.theta, rows, gradient.dtype.type(model.n_rows / rows.size), gradient)
        run.clipped += _bound(gradient, CLIP * model.steps)
        run.state = sampler.step(run.state, gradient, inplace=True)
        run.taken += 1
        if count in marks:
            _look(run, tests, run.epoch + count / len(batches), plan.collect)
            if not np.isfinite(run.curve[-1]).all():
                return


def _bound(gradient: Array, most: float) -> int:
    """Shorten a gradient that is longer than `most`; 1 if it was."""
    norm = float(np.sqrt(np.dot(gradient, gradient)))
    if norm <= most or not np.isfinite(norm):
        return 0
    gradient *= gradient.dtype.type(most / norm)
    return 1


def _look(run: _Run, tests: tuple[Any, Any], epoch: float, collect: int) -> None:
    """Test the draw, and the average if it has begun."""
    alone, averaged = [], []
    for test, average in zip(tests, run.averages, strict=True):
        with np.errstate(all="ignore"):
            own = average.look(test, run.state.theta, epoch > collect)
        alone.append(own)
        averaged.append(average.loss() if average.draws and np.isfinite(own) else own)
    run.curve.append((epoch, alone[0], averaged[0], alone[1], averaged[1]))
