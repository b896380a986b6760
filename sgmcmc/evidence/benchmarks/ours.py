"""This package on the problems that chains run through: wells, logistic regression, a Gaussian; all of it by `sample`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sgmcmc as sg
from sgmcmc.evidence.benchmarks.alone.checking import gaussian_check, logistic_check, wells_check
from sgmcmc.evidence.benchmarks.alone.clock import forget_peak, peak_megabytes, resident_megabytes, timed
from sgmcmc.evidence.benchmarks.alone.efficiency import THIN, compete
from sgmcmc.evidence.benchmarks.alone.problems import (
    GAUSSIAN,
    WELLS,
    logistic_data,
    logistic_start,
    noise_on_theta,
    reference,
    step_sizes,
    wells_start,
)
from sgmcmc.samplers import Sampler

__all__ = ["efficiency", "gaussian", "logistic", "memory", "sampler_for", "wells"]

Config = dict[str, Any]


def sampler_for(method: str, h: float, friction: float, noise: float = 0.0, sigma_theta: float = 0.1) -> Sampler:
    """A preset with everything else at its default; `noise` is the variance of the gradient noise where it is known."""
    makers: dict[str, Callable[[], Sampler]] = {
        "sgld": lambda: sg.SGLD(h),
        "sghmc": lambda: sg.SGHMC(h, friction=friction, noise_estimate=0.5 * h * noise),
        "sgnht": lambda: sg.SGNHT(h, diffusion=friction),
        "sgmgtd": lambda: sg.SGMGTD(h, a=1, sigma_p=friction, sigma_theta=sigma_theta),
    }
    return makers[method]()


def _measured(run: Callable[[int], Any], config: Config, judge: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """The first call (which compiles, or finds the kernel on disk), then the timed ones, then the check."""
    begin = time.perf_counter()
    run(0)
    first = time.perf_counter() - begin
    record, outputs = timed(run, range(1, config["runs"] + 1), config["budget"])
    work = config["chains"] * config["steps"]
    return record | {"version": sg.__version__, "first": first, "work": work, "check": judge(outputs)}


def wells(config: Config, folder: Path) -> dict[str, Any]:
    model = sg.models.GaussianMixture(WELLS.means, WELLS.scale, WELLS.weights)
    sampler = sampler_for(config["method"], WELLS.h, WELLS.friction, 2.0 * WELLS.B)
    chains, draws = config["chains"], config["steps"] // WELLS.thin
    starts = [wells_start(chains, seed, "float64") for seed in range(config["runs"] + 1)]

    def run(seed: int) -> Any:
        return sg.sample(
            model,
            sampler,
            draws,
            warmup=0,
            thin=WELLS.thin,
            chains=chains,
            init=starts[seed],
            dtype=config["dtype"],
            gradient_noise=WELLS.B,
            threads=config.get("threads"),
            seed=seed,
            progress=False,
            warn=False,
        ).draws

    return _measured(run, config, lambda outputs: wells_check([x.swapaxes(0, 1) for x in outputs]))


def _logistic_model(config: Config) -> Any:
    X, y = logistic_data(config["n"], config["d"])
    return sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(1.0))


def logistic(config: Config, folder: Path) -> dict[str, Any]:
    model, chains = _logistic_model(config), config["chains"]
    h, friction = step_sizes(config)
    sampler = sampler_for(config["method"], h, friction, sigma_theta=noise_on_theta(config))
    place = folder, config["n"], config["d"], chains
    starts = [logistic_start(*place, seed, "float64") for seed in range(config["runs"] + 1)]

    def run(seed: int) -> Any:
        return sg.sample(
            model,
            sampler,
            config["steps"],
            warmup=0,
            chains=chains,
            batch_size=config["batch"],
            init=starts[seed],
            dtype=config["dtype"],
            threads=config.get("threads"),
            seed=seed,
            progress=False,
            warn=False,
        ).draws

    exact = reference(folder, config["n"], config["d"])
    mean, sd = exact["mean"], exact["sd"]
    return _measured(run, config, lambda outputs: logistic_check([x.swapaxes(0, 1) for x in outputs], mean, sd))


def efficiency(config: Config, folder: Path) -> dict[str, Any]:
    model, chains = _logistic_model(config), config["chains"]

    def run(seed: int, h: float, friction: float) -> Any:
        try:
            return sg.sample(
                model,
                sampler_for(config["method"], h, friction),
                config["steps"] // THIN,
                warmup=0,
                thin=THIN,
                chains=chains,
                batch_size=config["batch"],
                init=logistic_start(folder, config["n"], config["d"], chains, seed, "float64"),
                dtype=config["dtype"],
                seed=seed,
                progress=False,
                warn=False,
            ).draws
        except sg.DivergenceError:
            return np.full((chains, config["steps"] // THIN, config["d"]), np.nan)

    begin = time.perf_counter()
    run(0, 1e-5, 1.0)
    extra = {"version": sg.__version__, "first": time.perf_counter() - begin}
    return compete(run, config, reference(folder, config["n"], config["d"]), folder) | extra


def gaussian(config: Config, folder: Path) -> dict[str, Any]:
    """One chain on a standard normal in d dimensions; only the last state is kept."""
    d, steps = config["d"], config["steps"]
    model, sampler = sg.models.Gaussian(np.zeros(d), 1.0), sampler_for(config["method"], GAUSSIAN.h, GAUSSIAN.friction)
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((config["runs"] + 1, 2, d))

    def run(seed: int) -> Any:
        return sg.sample(
            model,
            sampler,
            1,
            warmup=0,
            thin=steps,
            chains=1,
            init={"theta": noise[seed, 0], "xi": GAUSSIAN.friction + noise[seed, 1]},
            dtype=config["dtype"],
            threads=config.get("threads"),
            seed=seed,
            progress=False,
            warn=False,
        ).draws[0, -1]

    return _measured(run, config, lambda outputs: gaussian_check(np.concatenate(outputs)))


def memory(config: Config, folder: Path) -> dict[str, Any]:
    """Peak memory of a run of many chains beside the size of its draws; what was there before it does not count."""
    model, sampler = sg.models.Gaussian(np.zeros(config["d"]), 1.0), sampler_for("sgnht", 0.1, 1.0)
    options: Any = {"warmup": 0, "seed": 1, "progress": False, "dtype": config["dtype"]}
    sg.sample(model, sampler, 10, chains=4, warn=False, **options)  # loads the kernel
    forget_peak()
    before = resident_megabytes()
    begin = time.perf_counter()
    draws = sg.sample(model, sampler, config["steps"], chains=config["chains"], warn=False, **options).draws
    seconds, peak = time.perf_counter() - begin, peak_megabytes()
    check = gaussian_check(draws[:, -1])
    return {
        "version": sg.__version__,
        "first": 0.0,
        "seconds": [seconds],
        "others": 0.0,
        "work": config["chains"] * config["steps"],
        "draws_mb": draws.nbytes / 2**20,
        "before_mb": before,
        "run_mb": peak - before,
        "check": check,
    }
