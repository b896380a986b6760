"""`adapt_a`: the exponent of the monomial gamma kinetics, chosen while chains warm up.

For every a the sampler leaves exp(−U/T) invariant, so chains may pass from one a to another between two rounds. Only θ does:
momenta are fresh, and every a keeps the friction that it has learned, whose law is independent of θ. Each round every a has some
of the chains, the more the better its draws have been: weights follow the mean of log(criterion), whose changes shrink as
1/round. Adaptation thus dies out, and it ends with the warm-up: the draws that are kept are of one sampler, whose law is that
of any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.compiler import waiting
from sgmcmc.integrators.step import draw_momenta
from sgmcmc.kinetics import MonomialGamma
from sgmcmc.rng import stream
from sgmcmc.run.arguments import as_seed
from sgmcmc.run.sample import sample
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace
from sgmcmc.tuning.criterion import Criterion, discrepancy
from sgmcmc.tuning.tuned import Tuned

__all__ = ["adapt_a"]

LEAST = 2  # chains of every a in every round: the effective sample size of one alone is too noisy
DRAWS = 100  # of a round


def adapt_a(
    make: Callable[[float], Sampler],
    model: Any,
    *,
    values: Sequence[float] = (1.0, 1.5, 2.0),
    rounds: int = 12,
    steps: int = 1000,
    chains: int | None = None,
    criterion: Criterion | None = None,
    seed: int | None = 0,
    init: Any = None,
    progress: bool = True,
    **options: Any,
) -> Tuned:
    """Warm chains up and choose a meanwhile.

    Ctrl-C ends it after the round that is running.

    Parameters
    ----------
    make : callable
        From a to a sampler, such as ``lambda a: sg.SGMGTD(0.05, a=a)``; all of one composition.
    model : as for sample
    values : list of float
        Of a, to choose from.
    rounds, steps : int
        So many rounds of so many steps of every chain. Before them every value has two of its own, in which it learns
        its friction.
    chains : int, optional
        None is four for each value.
    criterion : callable, optional
        A function of a trace, smaller is better; None is `sgmcmc.tuning.discrepancy`, which sees bias as well as
        mixing.
    seed, init : as for sample
    progress : bool
    **options : as for sample: ``batch_size``, ``gradient_noise``, …

    Returns
    -------
    Tuned
        As of `tune`: ``.sampler``, ``.setting["a"]``, ``.table`` of all rounds, ``.sample(draws)``, which goes on from
        where the chains are.

    Examples
    --------
    >>> options = {"values": [1, 2], "rounds": 1, "steps": 100, "chains": 4, "progress": False}
    >>> best = sg.tuning.adapt_a(lambda a: sg.SGMGT(0.1, a=a), sg.models.Gaussian(), **options)
    >>> best.setting["a"] in (1, 2)
    True
    """
    values = [checks.number("values", a, 0.0, open_low=True) for a in values]
    if len(values) < 2 or len(set(values)) < len(values):
        raise ValueError(f"values={checks.show(values)} leave nothing to choose; give at least two, all different")
    chains = 4 * len(values) if chains is None else checks.integer("chains", chains, LEAST * len(values))
    rounds, steps = checks.integer("rounds", rounds, 1), checks.integer("steps", steps, DRAWS)
    samplers = [_made(make, a) for a in values]
    race = _Rounds(model, samplers, values, chains, steps, as_seed(seed, None), options)
    with waiting.speaking(progress):
        race.begin(init, criterion)
        return race.run(rounds, progress)


def _made(make: Callable[[float], Sampler], a: float) -> Sampler:
    sampler = make(a)
    if not isinstance(sampler, Sampler) or not isinstance(sampler.kinetics, MonomialGamma):
        raise TypeError(
            f"make({a:g}) gave {checks.show(sampler)}, which has no a; give lambda a: sg.SGMGTD(step_size, a=a)"
        )
    return sampler


class _Rounds:
    """All chains, and the score of every a."""

    def __init__(
        self,
        model: Any,
        samplers: list[Sampler],
        values: list[float],
        chains: int,
        steps: int,
        seed: int,
        options: dict[str, Any],
    ) -> None:
        self.model, self.samplers, self.values, self.chains = model, samplers, values, chains
        self.seed, self.options, self.rng = seed, options, np.random.default_rng([seed, 1])
        self.length: dict[str, Any] = {"draws": DRAWS, "thin": steps // DRAWS, "progress": False, "warn": False}
        self.means = np.zeros(len(values))  # of log(criterion)
        self.tried: list[dict[str, Any]] = []

    def begin(self, init: Any, criterion: Criterion | None) -> None:
        """Two rounds of every value, from which come thermostats, the first places of the chains, and the criterion's units."""
        warmup = self.length["draws"] * self.length["thin"]
        own = {"warmup": warmup, "chains": self.chains, "init": init}
        self.seeds = [
            int(s) for s in np.random.SeedSequence([self.seed, 2]).generate_state(len(self.values), np.uint64)
        ]
        alone = [self._alone(k, own) for k in range(len(self.values))]
        self._keep([k for k, trace in enumerate(alone) if trace is not None])
        self.first = [trace for trace in alone if trace is not None]
        self.states = [{name: array.copy() for name, array in trace.final.items()} for trace in self.first]
        chosen = np.arange(self.chains) % len(self.values)
        self.theta = np.stack([self.states[k]["theta"][chain] for chain, k in enumerate(chosen)])
        spread = np.concatenate([np.asarray(t.draws, np.float64).reshape(-1, t.dim) for t in self.first]).std(axis=0)
        self.criterion = discrepancy(np.where(spread > 0.0, spread, 1.0)) if criterion is None else criterion

    def _alone(self, k: int, own: dict[str, Any]) -> Trace | None:
        """The first rounds of a value; None if they diverge."""
        try:
            return sample(self.model, self.samplers[k], seed=self.seeds[k], **self.length, **own, **self.options)
        except checks.DivergenceError:
            self.tried.append({"round": 0, "a": self.values[k], "chains": self.chains, "log score": math.inf})
            return None

    def _keep(self, survivors: list[int]) -> None:
        """Only these values."""
        if len(survivors) == 0:
            raise ValueError(f"chains diverge with every a of {self.values}; give smaller steps, or init=")
        for name in ("values", "samplers", "seeds"):
            setattr(self, name, [getattr(self, name)[k] for k in survivors])
        self.means = np.zeros(len(survivors))

    def run(self, rounds: int, progress: bool) -> Tuned:
        from tqdm.auto import tqdm

        interrupted = False
        with tqdm(total=rounds, desc="choosing a", unit="round", disable=not progress) as bar:
            for number in range(1, rounds + 1):
                interrupted = self._round(number)
                bar.update()
                bar.set_postfix_str(f"a = {self._best():g}")
                if interrupted:
                    break
        return self._result(interrupted)

    def _round(self, number: int) -> bool:
        """One round of every a, with a random share of the chains. Returns whether Ctrl-C came."""
        order, begin = self.rng.permutation(self.chains), 0
        shares = shared_out(self.chains, weights(self.means, number), LEAST)
        interrupted = False
        for k, count in enumerate(shares):
            rows, begin = np.sort(order[begin : begin + count]), begin + count
            score, ended = self._go_on(k, rows, number)
            interrupted = interrupted or ended
            self.means[k] += (score - self.means[k]) / number
            self.tried.append({"round": number, "a": self.values[k], "chains": int(count), "log score": score})
        return interrupted

    def _go_on(self, k: int, rows: NDArray[Any], number: int) -> tuple[float, bool]:
        """Advance some chains by a round with value k. Returns log(criterion), and whether Ctrl-C came."""
        given = self._handed_over(k, rows, number)
        try:
            found = sample(
                self.model, self.samplers[k], warmup=0, chains=len(rows), init=given, **self.length, **self.options
            )
        except checks.DivergenceError:
            return self._of_a_failure(), False  # the chains stay where they were
        self.theta[rows] = found.final["theta"]
        for name, array in self.states[k].items():
            array[rows] = found.final[name]
        if found.info["interrupted"]:
            return float(self.means[k]), True
        score = float(self.criterion(found))
        return (math.log(max(score, 1e-300)) if math.isfinite(score) else self._of_a_failure()), False

    def _of_a_failure(self) -> float:
        """The score of a failure: the worst of all, plus 3."""
        return float(max(self.means.max(), 0.0)) + 3.0

    def _handed_over(self, k: int, rows: NDArray[Any], number: int) -> Trace:
        """The chains as a trace that sampler k continues: their θ, its thermostats, fresh momenta."""
        sampler, final = self.samplers[k], {name: array[rows] for name, array in self.states[k].items()}
        final["theta"], final["p"] = self.theta[rows], np.zeros_like(final["p"])
        dynamics = sampler.dynamics(final["theta"].shape[1], final["theta"].dtype)
        apart = int(np.random.SeedSequence([self.seed, 3, k, number]).generate_state(1, np.uint64)[0])
        for row, chain in enumerate(rows):
            draw_momenta(dynamics, final["p"][row], stream(apart, int(chain)))
        temperatures = np.zeros(len(rows))
        info = {"seed": self.seeds[k], "chains": [int(chain) for chain in rows], "sampler": repr(sampler)}
        return replace(
            self.first[k],
            draws=self.first[k].draws[rows],
            info=info,
            kinetic_temperature=temperatures,
            configurational_temperature=temperatures,
            by_coordinate=None,
            final=final,
        )

    def _best(self) -> float:
        return self.values[int(np.argmin(self.means))]

    def _result(self, interrupted: bool) -> Tuned:
        import pandas as pd

        best = int(np.argmin(self.means))
        steps = self.length["draws"] * self.length["thin"]
        table = pd.DataFrame(self.tried)
        table["gradients"] = steps * table["chains"]
        own = {k: v for k, v in self.options.items() if k != "batch_size"} | {"chains": self.chains}
        return Tuned(
            self.samplers[best],
            self.options.get("batch_size"),
            {"a": self.values[best]},
            float(np.exp(self.means[best])),
            table,
            interrupted,
            self.model,
            np.asarray(self.theta, np.float64),
            own,
        )


def weights(means: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """The shares of the values in a round: equal at first, the better ones more and more as their means are known better."""
    w = np.exp(-math.sqrt(number - 1.0) * (means - means.min()))
    return np.asarray(w / w.sum(), np.float64)


def shared_out(chains: int, weights: NDArray[np.float64], least: int) -> NDArray[np.int64]:
    """How many chains each value has: at least so many, the rest by weight (largest remainders)."""
    rest = chains - least * len(weights)
    wanted = rest * weights
    counts = np.floor(wanted).astype(np.int64)
    for k in np.argsort(counts - wanted, kind="stable")[: rest - int(counts.sum())]:
        counts[k] += 1
    return counts + least
