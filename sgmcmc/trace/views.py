"""What is computed of a trace when it is asked for: tables, averages, energies, a report, the data of ArviZ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.trace.archive import to_json

if TYPE_CHECKING:
    import pandas as pd

    from sgmcmc.bias.report import BiasReport

__all__ = ["Views"]


class Views:
    """To be mixed into the trace: methods that hand over to other modules, loaded when they are needed."""

    draws: NDArray[Any]
    info: dict[str, Any]
    names: Sequence[str]
    weights: NDArray[np.float64] | None

    @property
    def chain_numbers(self) -> list[int]:
        """The number each chain had in the run."""
        raise NotImplementedError

    def summary(self, hdi_prob: float = 0.94, weighted: bool = False) -> pd.DataFrame:
        """Returns mean, sd, interval, Monte Carlo error, effective sample sizes and R̂ of every parameter.

        Parameters
        ----------
        hdi_prob : float
            The share of draws in the highest density interval.
        weighted : bool
            Draws count by their step size, as for decreasing steps they should; columns then say ``weighted_mean``, ….

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> list(trace.summary().columns)
        ['mean', 'sd', 'hdi_low', 'hdi_high', 'mcse', 'ess_bulk', 'ess_tail', 'r_hat']
        """
        from sgmcmc import diagnostics
        from sgmcmc.trace import weighting

        if not weighted:
            return diagnostics.summary(self.draws, self.names, hdi_prob)
        return weighting.summary(self.draws, self.names, np.asarray(self.weights), hdi_prob)

    def expectation(self, function: Callable[[Any], Any] | None = None, weighted: bool = True) -> Any:
        """Returns E[f(θ)] = Σ h_t f(θ_t) / Σ h_t over all chains: the average for steps that are not all equal.

        Parameters
        ----------
        function : callable, optional
            Of one θ, a number or an array; None is θ itself, whose expectation is the mean.
        weighted : bool
            False counts all draws alike; the two differ only where step sizes do.

        Returns
        -------
        float or array

        References
        ----------
        Welling and Teh 2011.

        Examples
        --------
        >>> trace.expectation(lambda theta: theta**2).shape
        (2,)
        """
        from sgmcmc.trace import weighting

        return weighting.expectation(self.draws, np.asarray(self.weights), function, weighted)

    def bias_report(
        self, functions: Any = None, halving: bool | None = None, model: Any = None, progress: bool = False
    ) -> BiasReport:
        """Returns how wrong this run is, and what to do about it.

        Temperatures, gradient noise, stability, mixing and discretisation are looked at.

        Parameters
        ----------
        functions : callable or dict of them, optional
            Functions of θ that return a number. Their discretisation bias is estimated.
        halving : bool, optional
            Run it again with steps half as long, which takes twice the time of the run. None: if functions are given.
            Without functions the worst mean and the worst variance are looked at.
        model : optional
            None is the model of the run; a trace that was loaded does not have it, and a report of it says less.
        progress : bool

        Returns
        -------
        BiasReport
            ``print`` it, take its ``frame`` (a DataFrame) or its ``problems``; a notebook shows it as a table.

        Examples
        --------
        >>> trace.bias_report()["kinetic temperature"].verdict
        'good'
        """
        from sgmcmc.bias.report import bias_report

        return bias_report(self, functions, halving, model, progress)

    def to_dataframe(self) -> pd.DataFrame:
        """Returns one row per draw, with the index (chain, draw), and one column per parameter.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> trace.to_dataframe().shape
        (400, 2)
        """
        import pandas as pd

        _, n_draws, dim = self.draws.shape
        index = pd.MultiIndex.from_product([self.chain_numbers, range(n_draws)], names=["chain", "draw"])
        return pd.DataFrame(self.draws.reshape(-1, dim), index=index, columns=list(self.names))

    def energy(self, model: Any = None, most: int | None = None) -> NDArray[np.float64]:
        """Returns the potential energy U of the draws, over all rows of the model's data.

        Parameters
        ----------
        model : optional
            None is the model of the run; a trace that was loaded does not have it.
        most : int, optional
            How many draws of all chains to take, evenly spaced; None is all of them.

        Returns
        -------
        array (chain, draw)

        Examples
        --------
        >>> trace.energy(most=20).shape
        (2, 10)
        """
        from sgmcmc.diagnostics.energies import energies

        return energies(self, model, most)[1]

    def to_arviz(self, model: Any = None, log_likelihood: bool = False, predictive: bool = False) -> Any:
        """Returns an ArviZ ``DataTree``: the posterior by name; of the model log densities, prior draws, observed data.

        Parameters
        ----------
        model : optional
            None is the model of the run; a trace that was loaded does not have it, and gives the posterior alone.
        log_likelihood : bool
            Also log p(y_i | θ) of every row at every draw, which leave-one-out wants and which may be large.
        predictive : bool
            Also responses simulated at every draw, for posterior predictive checks; the model is a regression.

        Returns
        -------
        xarray.DataTree

        Examples
        --------
        >>> trace.to_arviz().posterior["theta"].shape
        (2, 200, 2)
        """
        from sgmcmc.trace.arviz_data import to_datatree

        return to_datatree(self, model, log_likelihood, predictive, to_json(self.info))
