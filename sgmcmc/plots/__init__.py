"""Pictures of a trace: chains against time, marginal densities, autocorrelations, energies, pairs of parameters.

Every function returns an array of matplotlib axes and draws into `ax` if that is given. Of pyplot's state only the current
figure changes.
"""

from sgmcmc.plots.autocorrelation import plot_autocorrelation
from sgmcmc.plots.chains import plot_trace
from sgmcmc.plots.energy import plot_energy
from sgmcmc.plots.marginals import plot_marginals
from sgmcmc.plots.pairs import plot_pairs
from sgmcmc.plots.style import COLOURS, blank_figure, dress
from sgmcmc.plots.wells import plot_wells

__all__ = [
    "COLOURS",
    "blank_figure",
    "dress",
    "plot_autocorrelation",
    "plot_energy",
    "plot_marginals",
    "plot_pairs",
    "plot_trace",
    "plot_wells",
]
