"""``sgmcmc demo``: five samplers on a potential with five wells, as a table and a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.cli.arguments import Run, at_least, silent, teach, to_stderr

if TYPE_CHECKING:
    import pandas as pd

    from sgmcmc.trace import Trace

__all__ = ["declare"]

_DEMO_THIN = 50
_FIRST_RUN = "The first run of a sampler compiles it, in some seconds; after that it is found on disk."


_LESSON = """\
examples:
  sgmcmc demo                              the table, and sgmcmc-demo.png
  sgmcmc demo --noise 0                    exact gradients: all samplers agree
  sgmcmc demo --temperature 1 --quiet      chains hardly cross the barriers, and R̂ says so

How to read the table: the first row is the truth, by quadrature. E pK' is the temperature of the momenta and should be
that of the target; gradient noise that is not absorbed heats it. ESS is what the draws are worth, R̂ near 1 says that the
chains have met. To compare samplers of your own: sgmcmc compare.

exit codes: 0 done, 1 could not be done (one sentence says why), 2 wrong arguments, 130 interrupted.
"""


def declare(parser: argparse.ArgumentParser) -> Run:
    teach(parser, _LESSON)

    def number(flag: str, kind: Any, low: float, default: float, letter: str, text: str) -> None:
        text = f"{text} (default: %(default)g)"
        parser.add_argument(flag, type=at_least(low, kind), default=default, metavar=letter, help=text)

    out, text = Path("sgmcmc-demo.png"), "picture to write (default: %(default)s)"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE.png", help=text)
    number("--draws", int, 100, 4000, "N", f"draws per chain, every {_DEMO_THIN}th step")
    number("--chains", int, 1, 16, "N", "chains per sampler")
    number("--seed", int, 0, 0, "S", "seed of the random numbers")
    number("--noise", float, 0, 10.0, "B", "gradient noise is N(0, 2B); 0 gives exact gradients")
    number("--temperature", float, 0.1, 2.0, "T", "the target is exp(−U/T); at 1 chains hardly ever cross the barriers")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    return _run


def _run(arguments: argparse.Namespace) -> None:
    import sgmcmc as sg
    from sgmcmc import plots

    out, T, noise = arguments.out, arguments.temperature, arguments.noise
    if out.suffix not in (".png", ".pdf", ".svg") or not out.parent.is_dir():
        raise ValueError(f"--out {out} cannot be written; give a .png, .pdf or .svg in a directory that exists")
    model, say = sg.models.FiveWell(), silent if arguments.quiet else to_stderr
    say(_FIRST_RUN)
    traces = {}
    for name, sampler in _demo_samplers(T).items():
        say(name)
        traces[name] = _demo_trace(model, sampler, arguments)
    exact = _exact(model, T)
    table = _demo_table(traces, exact)
    print(table.to_string())
    print(_demo_moral(noise, float(table["R̂"][1:].astype(float).max())))
    gradients = "exact gradients" if noise == 0.0 else f"gradient noise N(0, {2.0 * noise:g})"
    title = f"Five wells at temperature {T:g}: {arguments.chains} chains × {arguments.draws:,} draws, {gradients}"
    plots.plot_wells(traces, exact, title)[0, 0].figure.savefig(out, dpi=150)
    print(f"wrote {out}")


def _demo_trace(model: Any, sampler: Any, arguments: argparse.Namespace) -> Trace:
    """Chains that start in the bottoms of the five wells in turn, whatever the wells weigh: R̂ sees if they do not mix."""
    import sgmcmc as sg

    return sg.sample(
        model,
        sampler,
        draws=arguments.draws,
        warmup=arguments.draws * _DEMO_THIN // 10,
        chains=arguments.chains,
        seed=arguments.seed,
        init=np.resize(model.WELLS[:5], (arguments.chains, 1)),
        thin=_DEMO_THIN,
        gradient_noise=arguments.noise,
        progress=not arguments.quiet,
        warn=False,
    )


def _demo_samplers(temperature: float) -> dict[str, Any]:
    """One step size for all samplers with a momentum, a tenth of it for SGLD, defaults otherwise: shown, not ranked."""
    import sgmcmc as sg

    return {
        "SGLD": sg.SGLD(0.005, temperature),
        "SGHMC": sg.SGHMC(0.05, temperature=temperature),
        "SGNHT": sg.SGNHT(0.05, temperature=temperature),
        "SGMGT": sg.SGMGT(0.05, a=1, temperature=temperature),
        "SGMGT-D": sg.SGMGTD(0.05, a=1, temperature=temperature),
    }


def _demo_moral(noise: float, r_hat: float) -> str:
    if not r_hat < 1.1:
        return f"R̂ of {r_hat:.2f}: the chains have not met, and nothing follows; take more --draws or a higher --temperature."
    if noise == 0.0:
        return "With exact gradients all of them draw from the same law; one run does not rank samplers."
    return (
        "Gradient noise heats SGHMC, which was not told of it; the thermostats of the last three find out and absorb it.\n"
        "SGLD is heated too, the less the smaller its steps. One run does not rank samplers."
    )


class _Exact(NamedTuple):
    temperature: float
    grid: NDArray[np.float64]
    density: NDArray[np.float64]
    edges: NDArray[np.float64]  # the barriers between the wells, with −∞ and ∞ around them
    masses: NDArray[np.float64]  # the probability of each well
    mean: float
    sd: float
    below_zero: float  # P(θ < 0)


def _exact(model: Any, temperature: float) -> _Exact:
    """exp(−U/T) by the trapezium rule; U is called as plain Python, so that nothing is compiled for it."""
    from sgmcmc.potentials import add_energy

    rows = np.empty(0, np.int64)
    grid = np.linspace(-10.0, 10.0, 4001)
    weight = np.exp(-np.array([add_energy(model, grid[i : i + 1], rows) for i in range(grid.size)]) / temperature)
    spacing = grid[1] - grid[0]
    density = weight / (weight.sum() * spacing)
    below = np.concatenate(([0.0], np.cumsum(0.5 * spacing * (density[1:] + density[:-1]))))
    edges = np.array([-np.inf, *model.BARRIERS, np.inf])
    masses = np.diff(np.interp(edges, grid, below))
    mean = float((grid * density).sum() * spacing)
    sd = float(np.sqrt(((grid - mean) ** 2 * density).sum() * spacing))
    return _Exact(temperature, grid, density, edges, masses, mean, sd, float(np.interp(0.0, grid, below)))


def _demo_table(traces: dict[str, Trace], exact: _Exact) -> pd.DataFrame:
    """Moments of θ and the temperature of p, with the truth in the first row, and what the draws are worth and cost."""
    import pandas as pd

    from sgmcmc import diagnostics

    truth = (f"{exact.mean:.3f}", f"{exact.sd:.3f}", f"{exact.below_zero:.3f}", f"{exact.temperature:.3f}")
    rows = {"exact": [*truth, "", "", ""]}
    for name, trace in traces.items():
        x = trace.draws[:, :, 0].astype(np.float64)
        left = (x < 0.0).astype(np.float64)
        warm = trace.kinetic_temperature.mean()
        rows[name] = [
            f"{x.mean():.3f} ± {diagnostics.mcse(x):.3f}",
            f"{x.std():.3f}",
            f"{left.mean():.3f} ± {diagnostics.mcse(left):.3f}",
            f"{warm:.3f}" if np.isfinite(warm) else "no p",
            f"{diagnostics.ess(x):.0f}",
            f"{diagnostics.r_hat(x):.3f}",
            f"{trace.info['steps_per_second']:.3g}",
        ]
    columns = ["E θ", "sd θ", "P(θ < 0)", "E pK'", "ESS", "R̂", "steps/s"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
