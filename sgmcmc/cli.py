"""The command line: ``sgmcmc info`` tells what runs here, ``sgmcmc demo`` shows the samplers at work.

A subcommand is one function that declares its arguments and returns what runs them; `_COMMANDS` lists them.
Exit codes: 0 done, 1 could not be done (one sentence on stderr), 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from sgmcmc.trace import Trace

__all__ = ["main"]

Run = Callable[[argparse.Namespace], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except KeyboardInterrupt:
        print("sgmcmc: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        print(f"sgmcmc: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sgmcmc", description="Stochastic-gradient MCMC on NumPy and Numba.")
    parser.add_argument("--version", action="version", version=f"sgmcmc {version('sgmcmc')}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (declare, text) in _COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(run=declare(subparser))
    return parser


def _at_least(low: float, kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """An argument type: a number from `low` on."""

    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value < float("inf"):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {what} of at least {low:g}")
        return value

    return convert


# ---- info ------------------------------------------------------------------------------------------------------------


def _info(_: argparse.ArgumentParser) -> Run:
    return lambda arguments: print("\n".join(f"{name:<14}{value}" for name, value in _facts()))


def _facts() -> Iterator[tuple[str, str]]:
    """What a bug report, or a comparison of two machines, should say."""
    import llvmlite.binding as llvm
    import numba

    for package in ("sgmcmc", "numba", "llvmlite", "numpy", "scipy"):
        yield package, version(package)
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "platform", platform.platform()
    yield "cpu", f"{_cpu_name()} (LLVM: {llvm.get_host_cpu_name()})"
    yield "cores", f"{_usable_cores()} usable of {os.cpu_count()}"
    yield "threads", f"{numba.config.NUMBA_NUM_THREADS} by default"
    yield "simd", _simd(llvm.get_host_cpu_features())
    yield "jit", "off (NUMBA_DISABLE_JIT is set)" if numba.config.DISABLE_JIT else "on"
    yield "kernel cache", _cache_path()
    yield "cuda", "not used by this version (CPU only)"


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not a Linux
    name = platform.processor()
    return name if name != "" else platform.machine()


def _usable_cores() -> int | None:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux: what a container or taskset leaves us
    return os.cpu_count() if affinity is None else len(affinity(0))


_SIMD = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "neon", "sve", "sve2")


def _simd(features: dict[str, bool]) -> str:
    there = [name for name in _SIMD if features.get(name, False)]
    return ", ".join(there) if there else "none known"


def _cache_path() -> str:
    from numba.core.caching import FunctionCache

    from sgmcmc import checks

    try:
        return str(FunctionCache(checks.number).cache_path)
    except RuntimeError:  # neither the package nor the user's cache directory can be written
        return "none: no writable directory; set NUMBA_CACHE_DIR"


# ---- demo ------------------------------------------------------------------------------------------------------------


_DEMO_THIN = 100  # crossing a barrier of 9.7 takes some 10⁵ steps: most draws of a denser record would be the same


def _demo(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument(
        "--out", type=Path, default=Path("sgmcmc-demo.png"), metavar="FILE.png", help="picture to write"
    )
    parser.add_argument("--draws", type=_at_least(100, int), default=5000, metavar="N", help="draws per chain")
    parser.add_argument("--chains", type=_at_least(1, int), default=4, metavar="N", help="chains per sampler")
    parser.add_argument("--seed", type=_at_least(0, int), default=0, metavar="S", help="seed of the random numbers")
    noise = "B of the gradient noise N(0, 2B); 0 gives exact gradients (default: %(default)g)"
    parser.add_argument("--noise", type=_at_least(0, float), default=1.0, metavar="B", help=noise)
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    return _run_demo


def _run_demo(arguments: argparse.Namespace) -> None:
    import sgmcmc as sg
    from sgmcmc import plots

    out: Path = arguments.out
    if out.suffix not in (".png", ".pdf", ".svg") or not out.parent.is_dir():
        raise ValueError(f"--out {out} cannot be written; give a .png, .pdf or .svg in a directory that exists")
    model = sg.models.FiveWell()
    traces = {}
    for name, sampler in _demo_samplers().items():
        if not arguments.quiet:
            print(name, file=sys.stderr)
        traces[name] = sg.sample(
            model,
            sampler,
            draws=arguments.draws,
            warmup=arguments.draws * _DEMO_THIN // 10,
            chains=arguments.chains,
            seed=arguments.seed,
            thin=_DEMO_THIN,
            gradient_noise=arguments.noise,
            progress=not arguments.quiet,
        )
    print(_demo_table(traces, model).to_string())
    noise = "exact gradients" if arguments.noise == 0.0 else f"gradient noise N(0, {2.0 * arguments.noise:g})"
    title = f"Five wells, {arguments.chains} × {arguments.draws:,} draws, {noise}"
    plots.plot_wells(traces, _exact(model), title)[0, 0].figure.savefig(out, dpi=150)
    print("Crossings are rare here: errors are rough where ESS is below 100, and one run does not rank samplers.")
    print(f"wrote {out}")


def _demo_samplers() -> dict[str, Any]:
    """One step size for all samplers with a momentum, a tenth of it for SGLD, defaults otherwise: shown, not ranked.

    Steps much larger than these let θ's spread grow well beyond the exact one.
    """
    import sgmcmc as sg

    return {
        "SGLD": sg.SGLD(0.005),
        "SGHMC": sg.SGHMC(0.05),
        "SGNHT": sg.SGNHT(0.05),
        "SGMGT": sg.SGMGT(0.05, a=1),
        "SGMGT-D": sg.SGMGTD(0.05, a=1),
    }


class _Exact(NamedTuple):
    grid: NDArray[np.float64]
    density: NDArray[np.float64]
    edges: NDArray[np.float64]  # the barriers between the wells, with −∞ and ∞ around them
    masses: NDArray[np.float64]  # the probability of each well


def _exact(model: Any) -> _Exact:
    grid = np.linspace(-4.0, 4.0, 1601)
    density = np.exp([-model.energy([x]) for x in grid]) / model.Z
    return _Exact(grid, density, np.array([-np.inf, *model.BARRIERS, np.inf]), np.array(model.MASSES))


def _demo_table(traces: dict[str, Trace], model: Any) -> pd.DataFrame:
    """Mean, sd and P(θ < 0), with the truth in the first row, and what the draws are worth and cost."""
    import pandas as pd

    from sgmcmc import diagnostics

    sd = float(np.sqrt(model.cov[0, 0]))
    rows = {"exact": [f"{model.MEAN:.4f}", f"{sd:.4f}", f"{model.BELOW_ZERO:.4f}", "", "", ""]}
    for name, trace in traces.items():
        x = trace.draws[:, :, 0].astype(np.float64)
        left = (x < 0.0).astype(np.float64)
        rows[name] = [
            f"{x.mean():.4f} ± {diagnostics.mcse(x):.4f}",
            f"{x.std():.4f}",
            f"{left.mean():.4f} ± {diagnostics.mcse(left):.4f}",
            f"{diagnostics.ess(x):.0f}",
            f"{diagnostics.r_hat(x):.3f}",
            f"{trace.info['steps_per_second']:.3g}",
        ]
    columns = ["E θ", "sd θ", "P(θ < 0)", "ESS", "R̂", "steps/s"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], Run], str]] = {
    "info": (_info, "show versions, processor, instruction sets and the place of the kernel cache"),
    "demo": (_demo, "sample a potential with five wells by five samplers and draw what they found"),
}
