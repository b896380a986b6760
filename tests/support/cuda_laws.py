"""The laws of θ, p and ξ after long runs with device="cuda": 14 checks at the bounds of sgmcmc.testing."""

from __future__ import annotations

import numpy as np
from cuda_cases import GAUSS
from scipy import stats

import sgmcmc as sg
from sgmcmc.testing.statistics import kolmogorov, p_bound, z_bound, z_of_chains


def findings(kind: type, temperature: float = 1.0, chains: int = 1024, draws: int = 300) -> dict[str, float]:
    """How far, in units of its bound, each marginal of θ, p and ξ is from the law at T = 1."""
    T = 1.0
    sampler = sg.SGNHT(0.1, temperature=temperature)
    options = {"draws": draws, "warmup": 300, "thin": 5, "chains": chains, "seed": 12, "progress": False, "dtype": kind}
    trace = sg.sample(GAUSS, sampler, **options, init={"theta": GAUSS.mean, "xi": 1.0}, device="cuda")
    seen = trace.draws.astype(np.float64)
    z, p = z_bound(14), p_bound(14)
    found = {}
    for j in range(3):
        centred, variance = seen[:, :, j] - GAUSS.mean[j], T * GAUSS.covariance[j]
        found[f"mean {j}"] = abs(z_of_chains(centred, 0.0)) / z
        found[f"variance {j}"] = abs(z_of_chains(centred**2, variance)) / z
        law = stats.norm(0.0, np.sqrt(variance)).cdf
        found[f"theta {j}"] = np.log(kolmogorov(centred[:, -1], law)) / np.log(p)
        found[f"p {j}"] = np.log(kolmogorov(trace.final["p"][:, j], stats.norm(0.0, np.sqrt(T)).cdf)) / np.log(p)
    xi, gamma = trace.final["xi"], sampler.thermostat.gamma
    law = stats.norm(sampler.sigma_p, np.sqrt(gamma * T / (1 if xi.shape[1] == 3 else 3))).cdf
    found["xi"] = np.log(kolmogorov(xi[:, 0], law)) / np.log(p)
    found["kinetic temperature"] = abs(z_of_chains(trace.kinetic_temperature[:, None], T)) / z
    return found


def variance_ratio(sampler: sg.Sampler, kind: type, chains: int = 2048, draws: int = 900) -> tuple[float, float]:
    """The variance of θ over the truth, all coordinates together, and its standard error over chains."""
    options = {"draws": draws, "warmup": 400, "thin": 10, "chains": chains, "seed": 4, "progress": False, "dtype": kind}
    trace = sg.sample(GAUSS, sampler, **options, init={"theta": GAUSS.mean}, device="cuda")
    squares = (trace.draws.astype(np.float64) - GAUSS.mean) ** 2 / GAUSS.covariance
    each = squares.mean(axis=(1, 2))
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(chains))
