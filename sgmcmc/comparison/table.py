"""The table of a comparison: a pandas DataFrame that keeps its traces, and draws accuracy against time."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sgmcmc.comparison.picture import plot_history

__all__ = ["Comparison"]


class Comparison(pd.DataFrame):
    """One row per sampler and seed. What is made of it by pandas (rows, columns, means) is an ordinary DataFrame.

    history: accuracy on the way, with columns sampler, seed, gradients, seconds, and an error or discrepancy each.
    traces: the draws, by (sampler, seed).
    about: what was compared: the budget, the model, the units of the discrepancy.
    """

    _metadata = ["about", "history", "traces"]  # noqa: RUF012  (pandas wants a list)
    about: dict[str, Any]
    history: pd.DataFrame
    traces: dict[tuple[str, int], Any]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def plot(self, y: str | None = None, x: str = "seconds", ax: Any = None) -> Any:  # type: ignore[override]
        """Accuracy against time, one colour per sampler, thin lines for the seeds and a strong one for their median.

        y: "error_mean" (the default with a reference), "error_sd" or "ksd" (the default without).
        x: "seconds" of sampling, or "gradients".
        """
        return plot_history(self.history, y, x, ax)
