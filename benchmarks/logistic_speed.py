"""How long a step takes: logistic regression at the paper's size, N = 1000, d = 25, minibatches of 16.

Prints and writes (docs/logistic-speed.md) the time per step and chain of each sampler in both precisions: of one chain on one
thread, by the processor's clock for that thread, the best of several runs after everything is compiled; and the wall clock of
`sample` for 4 chains of 5000 draws. Usage: python benchmarks/logistic_speed.py [--quick]
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

import numba
import numpy as np

import sgmcmc as sg
from sgmcmc.minibatch import WithReplacement
from sgmcmc.rng import stream
from sgmcmc.run import loop_compiled, scheduler
from sgmcmc.run.plan import make_plan
from sgmcmc.samplers import in_precision

ROOT = Path(__file__).parent.parent
SAMPLERS = {
    "SGLD": sg.SGLD(1e-5),
    "SGHMC": sg.SGHMC(1e-3, friction=10.0),
    "SGNHT": sg.SGNHT(1e-3, diffusion=10.0),
    "SGMGT, a = 1": sg.SGMGT(1e-3, a=1, diffusion=10.0),
    "SGMGT-D, a = 1": sg.SGMGTD(1e-3, a=1, sigma_p=10.0),
    "SGMGT-D, a = 2": sg.SGMGTD(1e-3, a=2, sigma_p=10.0),
    "SGMGT-D, a = 1.5": sg.SGMGTD(1e-3, a=1.5, sigma_p=10.0),
}
BATCH = 16


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 25))
    y = (rng.random(1000) < 1 / (1 + np.exp(-X @ (0.5 * rng.normal(size=25))))).astype(int)
    return sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(10.0))


def nanoseconds_per_step(model, sampler, dtype, steps: int, repeats: int) -> float:
    """One chain on this thread, every step recorded, gradient and minibatch included."""
    gradient = loop_compiled.Gradient(WithReplacement(BATCH), model.n_rows, model.n_rows / BATCH, 0.0, np.inf)
    plan = make_plan(sampler.schedule, steps, 0, 1)
    job = scheduler.Job(
        loop_compiled.run_chunk,
        sampler.dynamics(model.dim, dtype),
        in_precision(model, dtype),
        in_precision(gradient, dtype),
        plan,
        dtype,
    )
    best = np.inf
    for _ in range(repeats):
        state = sampler.start(np.zeros(model.dim, dtype))
        out, origin = np.empty((steps, model.dim), dtype), np.zeros(model.dim, dtype)
        chain = scheduler.Chain(0, stream(1, 0), state, 0, 0.0, out, origin, fresh=True)
        buffers = job.buffers(model.dim)[0]
        job.advance(chain, buffers, 0)
        begin = time.thread_time()
        job.advance(chain, buffers, steps)
        best = min(best, (time.thread_time() - begin) / steps)
    return best * 1e9


def seconds_of_a_run(model, sampler, repeats: int) -> float:
    best = np.inf
    for i in range(repeats + 1):
        begin = time.perf_counter()
        sg.sample(model, sampler, draws=5000, warmup=0, chains=4, batch_size=BATCH, seed=1, progress=False)
        best = min(best, time.perf_counter() - begin) if i else best  # the first may compile
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="SGNHT only, and do not write the page")
    quick = parser.parse_args().quick
    model = problem()
    names = ["SGNHT"] if quick else list(SAMPLERS)
    lines = ["| sampler | float64, ns per step | float32, ns per step | 4 × 5000 draws, s |", "|---|---|---|---|"]
    print("\n".join(lines))
    figures = {}
    for name in names:
        double, single = (nanoseconds_per_step(model, SAMPLERS[name], t, 20_000, 15) for t in (np.float64, np.float32))
        seconds = seconds_of_a_run(model, SAMPLERS[name], 7)
        figures[name] = double
        lines.append(f"| {name} | {double:.0f} | {single:.0f} | {seconds:.3f} |")
        print(lines[-1], flush=True)
    where = (
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, Numba {numba.__version__}"
    )
    if not quick:
        text = "# Time per step: logistic regression, N = 1000, d = 25, batch 16\n\n"
        text += f"Written by `python benchmarks/logistic_speed.py` ({where}).\n\n" + "\n".join(lines) + "\n"
        (ROOT / "docs" / "logistic-speed.md").write_text(text)
    within = figures["SGNHT"] <= 2000.0
    print(f"SGNHT takes {figures['SGNHT']:.0f} ns per step and chain; the bound is 2000 ns")
    return int(not within)


if __name__ == "__main__":
    raise SystemExit(main())
