"""The result of tuning: a sampler that is ready to use, and the tables of what was tried and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.potentials import dim_of
from sgmcmc.run.sample import sample
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace
from sgmcmc.tuning.space import Setting

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Tuned"]


@dataclass(frozen=True, repr=False)
class Tuned:
    """What tuning chose.

    Parameters
    ----------
    sampler : Sampler
        Ready to use, with its scale.
    batch_size : int or None
        Rows per gradient that go with it; None is all of them, or a model without data.
    setting : dict
        All parameters that were tuned or held, by name.
    score : float
        Of the last stage.
    table : pandas.DataFrame
        Everything that was tried: stage, arm, score (smaller is better), status, gradients, and the parameters.
    interrupted : bool
        Whether Ctrl-C ended it.
    model : the model
    theta : array (chain, dim)
        Where the chains of the best setting are.
    options : dict
        Those of `sample`.
    checks : pandas.DataFrame, optional
        The runs on fresh seeds that the winner had to pass: look, step_size, verdict, what is wrong, the smallest and
        the largest variance along an axis in units of the right one, gradients. None if there were none.

    Examples
    --------
    >>> best = sg.tune(sg.SGLD, sg.models.Gaussian(), budget=5400, chains=1, progress=False)
    >>> best.passed, best.sample(50, warmup=10, seed=1, progress=False).draws.shape
    (True, (1, 50, 1))
    """

    sampler: Sampler
    batch_size: int | None
    setting: Setting
    score: float
    table: pd.DataFrame
    interrupted: bool
    model: Any
    theta: NDArray[np.float64]
    options: dict[str, Any]
    checks: pd.DataFrame | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the last look at the chosen setting found nothing wrong; None if there was none."""
        return None if self.checks is None else bool(self.checks["chosen"].any())

    def sample(self, draws: int = 1000, **options: Any) -> Trace:
        """`sg.sample` with this sampler and batch size, from where its chains are; `options` as there."""
        chains = options.get("chains", self.options["chains"])
        own = self.options | {"init": np.resize(self.theta, (chains, dim_of(self.model)))}
        if self.batch_size is not None:
            own["batch_size"] = self.batch_size
        return sample(self.model, self.sampler, draws, **(own | options))

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.setting.items() if np.ndim(v) == 0}
        told = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items())
        spent = self.table["gradients"].sum() + (0 if self.checks is None else self.checks["gradients"].sum())
        return f"<Tuned: {told}; score {self.score:.3g} after {spent:,} gradients{self._verdict()}>"

    def _verdict(self) -> str:
        if self.checks is None:
            return ""
        return f"; check on fresh seeds: {self.checks['verdict'].iloc[-1] if self.passed else 'NOT PASSED'}"
