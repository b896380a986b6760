"""Does it sample the right thing? Variance ÷ truth on Gaussian targets, for every sampler, friction and temperature.

Targets have unit scale, gradients are exact, h = 0.1, all with the default integrator. SGHMC and SGLD are linear there: their
stationary variance follows from a discrete Lyapunov equation on the map of the real kernel, with no Monte Carlo (see
sgmcmc/testing/lyapunov.py); so does that of SGNHT at friction 0.01, with its thermostat held at its mean. The rest is
measured, with standard errors. Usage: python benchmarks/stationary_variance.py [--quick]; writes docs/stationary-variance.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

import sgmcmc as sg
from sgmcmc.testing.lyapunov import LinearStep

ROOT = Path(__file__).parent.parent


def measured(sampler: sg.Sampler, dim: int, steps: int, warmup: int, xi: float | None = None) -> tuple[float, float]:
    """E[θ²]/T and its standard error, from many chains that start in the target."""
    temperature, coordinates = sampler.temperature, 1280
    chains = coordinates // dim
    rng = np.random.default_rng(1)
    init: dict[str, object] = {"theta": rng.normal(size=(chains, dim)) * temperature**0.5}
    if xi is not None:
        init["xi"] = xi
    trace = sg.sample(
        sg.models.Gaussian(np.zeros(dim), np.ones(dim)),
        sampler,
        draws=steps // 5,
        thin=5,
        warmup=warmup,
        chains=chains,
        init=init,
        seed=7,
        progress=False,
    )
    per_coordinate = (trace.draws**2).mean(axis=1).ravel() / temperature
    return float(per_coordinate.mean()), float(per_coordinate.std() / per_coordinate.size**0.5)


def rows(quick: bool):
    """(sampler, setting, how, ratio, standard error, bound)"""
    frictions, temperatures = ((0.01, 1.0, 10.0), (0.1, 4.0)) if quick else ((0.01, 0.1, 1.0, 10.0), (0.1, 1.0, 4.0))
    for t in temperatures:
        for a in frictions:
            ratio = LinearStep(sg.SGHMC(0.1, a, temperature=t)).stationary_covariance()[0, 0] / t
            yield "SGHMC", f"friction {a:g}, T = {t:g}", "Lyapunov", ratio, 0.0, 0.003
    scale = 0.1 if quick else 1.0
    for t in temperatures:
        frozen = sg.Sampler(0.1, sigma_p=0.01, temperature=t)  # SGNHT with ξ at its mean is SGHMC
        ratio = LinearStep(frozen).stationary_covariance()[0, 0] / t
        yield "SGNHT", f"diffusion 0.01, T = {t:g}, ξ held", "Lyapunov", ratio, 0.0, 0.003
        for a in frictions[1:]:
            for dim in (20,) if quick else (1, 20):
                sampler = sg.SGNHT(0.1, a, temperature=t)
                steps = int(scale * (400_000 if a > 5 else 150_000))
                yield (
                    "SGNHT",
                    f"diffusion {a:g}, T = {t:g}, d = {dim}",
                    "measured",
                    *measured(sampler, dim, steps, 500),
                    0.003,
                )
        yield (
            "SGNHT",
            f"diffusion 1, T = {t:g}, d = 20, ξ started at 0.0",
            "measured",
            *measured(sg.SGNHT(0.1, temperature=t), 20, int(scale * 150_000), 2000, xi=0.0),
            0.003,
        )
    for name, make in (("SGMGT", sg.SGMGT), ("SGMGT-D", sg.SGMGTD)):
        for a in (1, 2):
            for friction in (1.0,) if quick else (0.5, 1.0, 2.0):
                option = {"diffusion": friction} if name == "SGMGT" else {"sigma_p": friction}
                steps = int(scale * (100_000 if a == 1 else 300_000))
                result = measured(make(0.1, a=a, **option), 20, steps, 20_000)
                yield name, f"a = {a}, friction {friction:g}, T = 1, d = 20", "measured", *result, 0.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer cells and a tenth of the steps")
    quick = parser.parse_args().quick
    lines = [
        "| sampler | setting | how | variance ÷ truth | standard error | bound | within |",
        "|---|---|---|---|---|---|---|",
    ]
    failed = 0
    for sampler, setting, how, ratio, error, bound in tqdm(rows(quick), unit="cell"):
        within = abs(ratio - 1.0) <= bound + (3.0 * error if quick else 0.0)
        failed += not within
        lines.append(
            f"| {sampler} | {setting} | {how} | {ratio:.5f} | {error:.5f} | ± {bound:g} | {'yes' if within else 'NO'} |"
        )
        tqdm.write(lines[-1])
    if not quick:
        text = "# Variance ÷ truth on Gaussian targets\n\nWritten by `python benchmarks/stationary_variance.py`.\n\n"
        text += f"{__doc__.split('Usage')[0].split(chr(10), 2)[2].strip()}\n\n" + "\n".join(lines) + "\n"
        (ROOT / "docs" / "stationary-variance.md").write_text(text)
    print(f"{failed} cells out of bounds")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
