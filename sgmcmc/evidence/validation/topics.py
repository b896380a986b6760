"""The topics of the validation suite: what is checked, and why a sceptic should care."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

__all__ = ["TOPICS", "Topic", "module_of"]


class Topic(NamedTuple):
    """One kind of evidence."""

    name: str  # of its module, see `module_of`
    title: str
    text: str  # what is checked, and why a sceptic should care
    also: tuple[str, ...] = ()  # further modules with findings on the same subject


# Topics that are also single checks of `sgmcmc.testing`; the modules of the others stand beside this one.
PUBLIC = (
    "black_box",
    "calibration",
    "fokker_planck",
    "invariance",
    "lyapunov",
    "marginals",
    "rates",
    "resampling",
    "stein",
    "streams",
)


def module_of(name: str) -> Any:
    """The module with the findings of a topic."""
    return importlib.import_module(f"sgmcmc.{'testing' if name in PUBLIC else 'evidence.validation'}.{name}")


TOPICS = (
    Topic(
        "fokker_planck",
        "The process has the right law: Fokker–Planck",
        "The drift and the diffusion are read off the real kernel (explicit Euler is linear in the step, so "
        "one step gives them exactly) and put into the stationary Fokker–Planck equation. The residual is "
        "zero to round-off at random points, for every kinetics, thermostat and temperature. Independently, "
        "the generator on a grid has the target as its null vector.",
        ("finite_volume",),
    ),
    Topic(
        "marginals",
        "Momenta, frictions and parameters follow their laws",
        "Draws of p against the normaliser, moments and distribution function found by quadrature; ξ per "
        "coordinate and per chain; θ on targets with known answers, with standard errors by effective sample "
        "size.",
        ("posterior_runs",),
    ),
    Topic(
        "invariance",
        "One step from the exact law leaves it, up to the order of the integrator",
        "Starts are drawn exactly from the invariant law, by scrambled Sobol points, and take one real step. "
        "What the means of test functions change by must shrink like h² per step for Euler and h³ for the "
        "splittings. It sees errors that long runs hide.",
    ),
    Topic(
        "lyapunov",
        "Linear problems, solved exactly",
        "On quadratic potentials a step is a linear map plus noise. Both are read off the kernel by probing, "
        "and the stationary covariance solves a discrete Lyapunov equation: bias and order with no Monte "
        "Carlo at all.",
    ),
    Topic(
        "rates",
        "Bias and mean squared error shrink as Proposition 2 says",
        "Time averages from a fixed start, on nonlinear targets, against the number of steps and the step "
        "size, with the noise coupled across step sizes; exponents are fitted, with intervals. For the "
        "samplers whose state is a line or a plane bias and MSE of runs of up to a million steps and more are "
        "computed exactly, and with them the step size at which they are least.",
        ("optimum",),
    ),
    Topic(
        "resampling",
        "Fresh momenta and frictions change neither law nor order",
        "Lemmas 1 and 2: with p and ξ drawn afresh every so many steps the law stays, and so does the order in h.",
    ),
    Topic(
        "reductions",
        "Samplers that should be equal are equal",
        "SGMGT-D becomes SGNHT becomes SGHMC, trajectory by trajectory; SGLD is the limit of large friction; "
        "a → 1/2 and softening → ∞ have their limits.",
    ),
    Topic(
        "gradient_noise",
        "Unknown gradient noise",
        "The thermostat finds out how much gradient noise there is. A fixed centre pulls it back and runs "
        "hot, as theory says; the adaptive one does not. Minibatch noise on linear regression is compared "
        "with its exact stationary covariance.",
    ),
    Topic(
        "published",
        "The published kinetics for a = 2 is not smooth",
        "Its curvature has no bound at p = 0, so the increments of the thermostat have infinite variance. The "
        "smooth form of order 3, the default here, has a bound.",
    ),
    Topic(
        "calibration",
        "Posteriors are calibrated",
        "Geweke's joint tests and simulation-based calibration of whole models with their priors: a "
        "likelihood weighed wrongly, or a prior scaled by N/n, shows here.",
    ),
    Topic(
        "stein",
        "Stein discrepancies and the weights of modes",
        "The kernel Stein discrepancy with a wild bootstrap needs no reference draws. It is blind to the "
        "weights of modes that lie far apart, so wells are counted too.",
    ),
    Topic(
        "streams",
        "Random numbers are independent, and the same everywhere",
        "Statistical tests of the addressed stream, correlations between chains, steps, coordinates and "
        "purposes; the same bits for any number of threads and any chunking; float32 against float64.",
    ),
    Topic(
        "black_box",
        "From outside",
        "The samplers seen as a function step(state, gradient) and nothing else, the way any other library "
        "can be looked at. Half of the chains start away from the target; a check that would not have seen an error of "
        "5 % is not resolved, and fails. The table shows twelve kinds of wrong samplers, and what saw them.",
    ),
    Topic(
        "mutants",
        "A test of the tests: wrong samplers are rejected",
        "Deliberately wrong samplers, each with one error of the kind that real libraries have shipped. Every "
        "one is rejected by a named check, and the right ones pass; the last column is the smallest error of "
        "that kind that is still seen.",
    ),
)
