"""No right sampler fails: `sgmcmc.testing.check` of forty of them over fresh seeds, with a checkpoint.

    python validation/right_samplers.py [--seeds 20] [--first 1] [--checkpoint right.json]

Presets, exponents a, thermostats per coordinate and per chain, temperatures, masses, schedules, integrators, frictions from 0.1
to 50 and γ from 0.1 to 30; an interrupted run goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import sgmcmc as sg
from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
from sgmcmc.kinetics import Gaussian, Relativistic
from sgmcmc.schedules import Cyclical, PolynomialDecay
from sgmcmc.thermostats import NoseHoover


def grid() -> dict[str, sg.Sampler]:
    """Forty right samplers by name: presets as they are, with an adaptive centre, and some with a fixed one."""
    h, fixed = 0.1, {"center": "fixed"}
    found = {
        "SGLD": sg.SGLD(0.01),
        "SGLD, T = 4": sg.SGLD(0.01, 4.0),
        "SGLD, Euler": sg.SGLD(0.001, integrator=Euler()),
    }
    found["SGLD, decay"] = sg.SGLD(PolynomialDecay(0.02, 1.0 / 3.0, 10_000.0))
    found |= {f"SGHMC, friction {A:g}": sg.SGHMC(h, A) for A in (0.1, 0.3, 1.0, 3.0, 10.0, 50.0)}
    found |= {f"SGHMC, T = {T:g}": sg.SGHMC(h, 1.0, temperature=T) for T in (0.1, 4.0)}
    found["SGHMC, splitting"] = sg.SGHMC(h, 1.0, integrator=SymmetricSplitting())
    found["SGHMC, Euler"] = sg.SGHMC(0.01, 1.0, integrator=Euler())
    found["SGHMC, cyclical"] = sg.SGHMC(Cyclical(h, 100), 1.0)
    found["SGHMC, h = 0.001"] = sg.SGHMC(0.001, 2.0)
    found["SGHMC, mass 4"] = sg.Sampler(h, Gaussian(4.0))
    found["SGHMC, mass 0.25"] = sg.Sampler(0.05, Gaussian(0.25))
    found["SGHMC, fresh momenta"] = sg.Sampler(h, Gaussian(), resample_momentum=10)
    found["SGHMC, scale 0.3"] = sg.SGHMC(h, 1.0, scale=0.3)
    found["relativistic"] = sg.Sampler(h, Relativistic(1.3, 0.8), sigma_p=1.0)
    found |= {f"SGNHT, γ = {g:g}": sg.SGNHT(h, 1.0, g) for g in (0.1, 1.0, 10.0, 30.0)}
    found |= {f"SGNHT, diffusion {A:g}": sg.SGNHT(h, A) for A in (0.1, 10.0)}
    found["SGNHT, T = 2"] = sg.SGNHT(h, temperature=2.0)
    found["SGNHT, per chain"] = sg.SGNHT(h, per="chain")
    found["SGNHT, cyclical"] = sg.SGNHT(Cyclical(h, 200))
    found |= {f"SGMGT, a = {a:g}": sg.SGMGT(h, a) for a in (0.75, 1.0, 1.5, 2.0)}
    found["SGMGT, cyclical"] = sg.SGMGT(Cyclical(h, 100))
    found["SGMGT, per chain, T = 0.5"] = sg.SGMGT(h, temperature=0.5, per="chain", **fixed)
    found |= {f"SGMGT-D, a = {a:g}": sg.SGMGTD(h, a) for a in (0.75, 1.0, 2.0)}
    found["SGMGT-D, a = 5"] = sg.SGMGTD(0.5 * h, 5.0)
    found["SGMGT-D, h = 0.001"] = sg.SGMGTD(0.001)
    found["SGMGT-D, T = 2"] = sg.SGMGTD(h, temperature=2.0)
    found["Gaussian, all noises"] = sg.Sampler(
        h, Gaussian(), NoseHoover(1.0, center="fixed"), BAOAB(), sigma_theta=0.3, sigma_xi=0.3
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed: two processes take ten each")
    parser.add_argument("--checkpoint", type=Path, default=Path("right_samplers.json"))
    options = parser.parse_args()
    done = json.loads(options.checkpoint.read_text()) if options.checkpoint.exists() else {}
    warnings.simplefilter("ignore")
    for seed in range(options.first, options.first + options.seeds):
        for name, sampler in grid().items():
            key = f"{name}; seed {seed}"
            if key in done:
                continue
            begin = time.perf_counter()
            report = sg.testing.check(sampler, seed=seed, progress=False)
            failed = [[f.verdict, f.check, f.figure, f.bound, f.detail] for f in report.failures]
            done[key] = {"verdict": report.verdict, "failed": failed, "seconds": time.perf_counter() - begin}
            options.checkpoint.write_text(json.dumps(done, indent=1, ensure_ascii=False))
            print(f"{key}: {report.verdict}, {done[key]['seconds']:.0f} s", flush=True)
    verdicts = [d["verdict"] for d in done.values()]
    print({v: verdicts.count(v) for v in sorted(set(verdicts))})


if __name__ == "__main__":
    main()
