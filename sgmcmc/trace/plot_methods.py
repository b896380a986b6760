"""Plots and HTML of a trace, as methods that call `sgmcmc.plots`."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

__all__ = ["PlotMethods"]

_ROWS_SHOWN = 20  # parameters in a notebook; summary() has all

Chosen = Sequence[int | str] | str | None


class PlotMethods:
    """A mixin of the trace. Every method returns an array of matplotlib axes, and draws into `ax` if that is given."""

    draws: NDArray[Any]
    names: Sequence[str]

    def plot_trace(self, parameters: Chosen = None, ax: Any = None) -> NDArray[Any]:
        """Every chain against time, one axes per parameter.

        Parameters
        ----------
        parameters : list or str, optional
            Which ones to show: positions, names (``"w[0,2]"``), blocks (``"w"`` is all of w); None is the first twenty.
        ax : matplotlib axes, optional

        Returns
        -------
        array of matplotlib axes

        Examples
        --------
        >>> trace.plot_trace().shape
        (2,)
        """
        from sgmcmc import plots

        return plots.plot_trace(self, parameters, ax)

    def plot_marginals(self, truth: Any = None, parameters: Chosen = None, ax: Any = None) -> NDArray[Any]:
        """The marginal density of each parameter, with its interval and, if given, the true value.

        Parameters
        ----------
        truth : array, optional
        parameters : list or str, optional
            Which ones to show, as for `plot_trace`.
        ax : matplotlib axes, optional

        Returns
        -------
        array of matplotlib axes

        Examples
        --------
        >>> trace.plot_marginals(truth=[0.0, 0.0]).shape
        (2,)
        """
        from sgmcmc import plots

        return plots.plot_marginals(self, truth, parameters, ax)

    def plot_autocorrelation(
        self, max_lag: int | None = None, parameters: Chosen = None, ax: Any = None
    ) -> NDArray[Any]:
        """How fast each chain forgets, one axes per parameter.

        Parameters
        ----------
        max_lag : int, optional
        parameters : list or str, optional
            Which ones to show, as for `plot_trace`.
        ax : matplotlib axes, optional

        Returns
        -------
        array of matplotlib axes

        Examples
        --------
        >>> trace.plot_autocorrelation(parameters=["theta[0]"]).shape
        (1,)
        """
        from sgmcmc import plots

        return plots.plot_autocorrelation(self, max_lag, parameters, ax)

    def plot_energy(self, model: Any = None, ax: Any = None, most: int = 2000) -> NDArray[Any]:
        """The potential energy of the draws against time and as a histogram: two axes.

        Parameters
        ----------
        model : optional
            None is the model of the run; a trace that was loaded does not have it.
        ax : matplotlib axes, optional
        most : int
            How many draws of all chains to take, evenly spaced: each costs a pass over the data.

        Returns
        -------
        array of matplotlib axes

        Examples
        --------
        >>> trace.plot_energy().shape
        (2,)
        """
        from sgmcmc import plots

        return plots.plot_energy(self, model, ax, most)

    def plot_pairs(self, parameters: Chosen = None, truth: Any = None, ax: Any = None) -> NDArray[Any]:
        """Every pair of parameters, and their marginals on the diagonal.

        Parameters
        ----------
        parameters : list or str, optional
            Which ones to show, as for `plot_trace`.
        truth : array, optional
        ax : matplotlib axes, optional

        Returns
        -------
        array (parameter, parameter) of matplotlib axes
            The upper half is empty.

        Examples
        --------
        >>> trace.plot_pairs().shape
        (2, 2)
        """
        from sgmcmc import plots

        return plots.plot_pairs(self, parameters, truth, ax)

    def _repr_html_(self) -> str:
        from sgmcmc import diagnostics

        dim = self.draws.shape[2]
        shown = diagnostics.summary(self.draws[:, :, :_ROWS_SHOWN], self.names[:_ROWS_SHOWN])
        table = shown.to_html(float_format=lambda x: f"{x:.4g}")
        more = f"<p>… and {dim - _ROWS_SHOWN} more parameters</p>" if dim > _ROWS_SHOWN else ""
        return f"<b>Trace</b>: {html.escape(self._size())}<br>{html.escape(self._story())}{table}{more}"

    def _size(self) -> str:
        raise NotImplementedError

    def _story(self) -> str:
        raise NotImplementedError
