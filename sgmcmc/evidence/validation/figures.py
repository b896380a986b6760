"""Pictures of the report that need more than one module, and where the others are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sgmcmc.plots import COLOURS

__all__ = ["draw"]

_PANELS = {"calibration": (1, 3), "gradient_noise": (1, 2), "published": (1, 2)}


def draw(figure: Any, module: Any, name: str, profile: str, seed: int) -> bool:
    """Draw the picture of a topic on a matplotlib figure; False if it has none."""
    if name in _OWN:
        _OWN[name](figure, seed)
    elif name in _PANELS:
        rows, columns = _PANELS[name]
        figure.set_size_inches(10.0, 3.6 * rows)
        module.figure(figure.subplots(rows, columns))
    elif hasattr(module, "figure"):
        module.figure(figure, profile, seed)
    else:
        return False
    return True


def _rates(figure: Any, seed: int) -> None:
    """Exponents as measured, and the exact errors over h and T; one legend for the first four panels."""
    from matplotlib.ticker import NullFormatter

    from sgmcmc.evidence.validation import optimum_picture
    from sgmcmc.testing import rates

    figure.set_size_inches(10.0, 11.0)
    upper, lower = figure.subfigures(2, 1, height_ratios=(2.0, 1.1))
    rates.figure(upper.subplots(2, 2), seed=seed)
    optimum_picture.figure(lower.subplots(1, 2))
    handles, labels = upper.axes[0].get_legend_handles_labels()
    for axis in upper.axes:
        if axis.get_legend() is not None:
            axis.get_legend().remove()
    upper.legend(handles, labels, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
    for axis in figure.axes:
        axis.xaxis.set_minor_formatter(NullFormatter())  # between the decades they would run into each other
        axis.yaxis.set_minor_formatter(NullFormatter())


def _orders(figure: Any, seed: int) -> None:
    """What one step changes the law by, against h, by quadrature."""
    from sgmcmc.testing import quadrature
    from sgmcmc.testing.targets import QUARTIC

    figure.set_size_inches(10.0, 4.4)
    for axis, euler, order in zip(figure.subplots(1, 2, sharex=True), (True, False), (2, 3), strict=True):
        for colour, marker, (subject, h) in zip(COLOURS, "os^Dv", quadrature.subjects(1.0, euler), strict=False):
            label = subject.name.removesuffix(", Euler") + (", c = 1.5" if "a = 2" in subject.name else "")
            steps = h * np.array([0.25, 0.5, 1.0])
            sizes = np.array([quadrature.defect_size(subject, QUARTIC, float(step)) for step in steps])
            axis.loglog(steps, sizes, color=colour, marker=marker, ms=5, lw=1, label=label)
            axis.loglog(steps, sizes[0] * (steps / steps[0]) ** order, color=colour, ls="--", lw=1)
        axis.plot([], [], color="#333333", ls="--", lw=1, label=f"slope {order}")
        axis.set(xlabel="step size h", title="Euler" if euler else "default integrator")
        axis.set_xticks(ticks := (0.01, 0.02, 0.04, 0.08, 0.16), [f"{h:g}" for h in ticks])
        axis.minorticks_off()
        axis.legend(frameon=False, fontsize=8)
    figure.axes[0].set_ylabel("change of the law in one step")
    figure.suptitle("Defect of one step from the exact law, quartic target, by quadrature", fontsize=11)


def _marginals(figure: Any, seed: int) -> None:
    """Draws of p and of θ over their laws."""
    from sgmcmc.kinetics import Gaussian, MonomialGamma
    from sgmcmc.testing.laws import momentum_law
    from sgmcmc.testing.marginals import drawn_momenta

    cases = ((Gaussian(), 1.0), (MonomialGamma(1.0), 1.0), (MonomialGamma(2.0), 1.0), (MonomialGamma(2.0), 0.4))
    figure.set_size_inches(11.0, 3.2)
    for axis, (kinetics, T) in zip(figure.subplots(1, 4), cases, strict=True):
        law = momentum_law(kinetics, T)
        edge = float(law.quantile(0.99))
        x = np.linspace(-edge, edge, 401)
        p = drawn_momenta(kinetics, T, 200_000, seed).ravel()
        bins = np.linspace(-edge, edge, 61)
        axis.stairs(
            np.histogram(p, bins)[0] / p.size / (bins[1] - bins[0]), bins, fill=True, color="#D9D9D9", label="draws"
        )
        axis.plot(x, law.density(x), color=COLOURS[0], lw=1.5, label="exp(−K/T)/Z")
        a = getattr(kinetics, "a", 0.5)
        axis.set_title(f"{type(kinetics).__name__}, a = {a:g}, T = {T:g}", fontsize=9)
        axis.set_xlabel("p")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=2, frameon=False, fontsize=9
    )
    figure.axes[0].set_ylabel("density")


def _bias(figure: Any, seed: int) -> None:
    """The bias of Var θ on a Gaussian against h, with no Monte Carlo."""
    from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
    from sgmcmc.samplers import Sampler
    from sgmcmc.testing.lyapunov import stationary_covariance

    steps = np.geomspace(0.02, 0.5, 9)
    figure.set_size_inches(7.0, 4.2)
    axis = figure.subplots()
    schemes = (("Euler", Euler()), ("splitting", SymmetricSplitting()), ("BAOAB", BAOAB()))
    cases = [(f"{name}, σ_θ = {sigma:g}", scheme, sigma) for name, scheme in schemes for sigma in (0.0, 0.5)]
    for colour, marker, (name, integrator, sigma) in zip(COLOURS, "os^Dv<", cases, strict=False):
        off = [
            abs(
                stationary_covariance(Sampler(float(h), sigma_theta=sigma, sigma_p=2.0, integrator=integrator))[0, 0]
                - 1.0
            )
            for h in steps
        ]
        axis.loglog(steps, np.maximum(off, 1e-16), color=colour, marker=marker, ms=4, lw=1, label=name)
    for order, start in ((1, 0.05), (2, 2e-3)):
        axis.loglog(
            steps,
            start * (steps / steps[4]) ** order,
            color="#333333",
            ls="--",
            lw=1,
            label=f"slope {order}" if order == 1 else "slope 2",
        )
    axis.set(xlabel="step size h", ylabel="|Var θ − 1|", title="Bias on a Gaussian target, by Lyapunov's equation")
    axis.legend(frameon=False, fontsize=8, ncol=2)


_OWN: dict[str, Callable[[Any, int], None]] = {
    "invariance": _orders,
    "marginals": _marginals,
    "lyapunov": _bias,
    "rates": _rates,
}
