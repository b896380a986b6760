"""The report: all findings about a run, as text, table and HTML."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from sgmcmc import checks
from sgmcmc.bias.coordinates import worst_coordinate
from sgmcmc.bias.finding import BiasFinding
from sgmcmc.bias.foreseen import foreseen
from sgmcmc.bias.halving import as_functions, step_halving
from sgmcmc.bias.health import diverged
from sgmcmc.bias.mixing import mixing
from sgmcmc.bias.noise import gradient_noise
from sgmcmc.bias.runaway import runaway
from sgmcmc.bias.stability import stability
from sgmcmc.bias.temperatures import configurational, kinetic
from sgmcmc.diagnostics.energies import fitting

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BiasReport", "bias_report"]


def bias_report(
    trace: Any, functions: Any = None, halving: bool | None = None, model: Any = None, progress: bool = False
) -> BiasReport:
    """The report of `Trace.bias_report`."""
    if halving is not None and not isinstance(halving, bool):
        raise TypeError(
            f"halving={checks.show(halving)} is neither True, False nor None; True runs it again with half the step"
        )
    wanted = as_functions(functions)
    model = trace.model if model is None else fitting(trace, model)
    known = None if trace.dim == 0 else model
    if trace.n_draws == 0 and trace.moments is None:
        lost = diverged(trace)
        return BiasReport([*([] if lost is None else [lost]), _NO_DRAWS], _about(trace))
    seen = [
        diverged(trace),
        runaway(trace),
        configurational(trace, known),
        worst_coordinate(trace, 0.05),
        kinetic(trace),
    ]
    found = [f for f in seen if f is not None]
    found += gradient_noise(trace, known, trace.rerun)
    found += [stability(trace, known, trace.rerun)]
    found += foreseen(trace)
    found += mixing(trace)
    if halving or (halving is None and len(wanted) > 0):
        found += step_halving(trace, trace.rerun, wanted, progress)
    return BiasReport(found, _about(trace))


_NO_DRAWS = BiasFinding(
    "draws",
    0.0,
    math.nan,
    math.nan,
    "not mixed",
    "There are no draws to judge: the run ended before its first one; run it longer, or go on with init=trace.",
)


def _about(trace: Any) -> str:
    return " ".join(str(trace.info.get("sampler", "unknown sampler")).split())


class BiasReport:
    """How wrong a run is. Print it, or take `frame`; in a notebook it shows itself.

    Attributes
    ----------
    findings : list of BiasFinding
        One for each quantity, with value, interval, verdict and advice.
    problems : list of BiasFinding
        Those whose verdict is a problem.
    """

    def __init__(self, findings: list[BiasFinding], about: str) -> None:
        self.findings, self.about = findings, about

    @property
    def problems(self) -> list[BiasFinding]:
        """The findings whose verdict is a problem; empty if none was seen."""
        return [f for f in self.findings if f.is_problem]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each quantity: value, low, high (95 %), verdict, advice."""
        import pandas as pd

        return pd.DataFrame(self.findings, columns=list(BiasFinding._fields)).set_index("quantity")

    def __getitem__(self, quantity: str) -> BiasFinding:
        """The finding whose name is, or begins with, this."""
        for found in self.findings:
            if found.quantity.startswith(quantity):
                return found
        raise KeyError(f"{quantity!r} is not in this report; there are {', '.join(f.quantity for f in self.findings)}")

    def __repr__(self) -> str:
        return f"<BiasReport: {self._verdict()}>"

    def __str__(self) -> str:
        cells = [(f.quantity, _numbers(f), f.verdict, f.advice) for f in self.findings]
        widths = [max(len(row[k]) for row in cells) for k in range(3)] + [0]
        lines = ["  ".join(f"{text:<{w}}" for text, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([f"{self.about}: {self._verdict()}", *lines])

    def _verdict(self) -> str:
        kinds = list(dict.fromkeys(f.verdict for f in self.problems))
        if len(kinds) > 0:
            return ", ".join(kinds)
        open_ones = [f.quantity for f in self.findings if f.verdict == "not resolved"]
        return "no problem found" + (f"; not resolved: {', '.join(open_ones)}" if open_ones else "")

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f.quantity)}</td><td>{html.escape(_numbers(f))}</td>"
            f"<td><b>{html.escape(f.verdict)}</b></td><td>{html.escape(f.advice)}</td></tr>"
            for f in self.findings
        )
        head = "<tr><th>quantity</th><th>value (95 %)</th><th>verdict</th><th>what to do</th></tr>"
        return f"<p>{html.escape(self.about)}: <b>{html.escape(self._verdict())}</b></p><table>{head}{rows}</table>"


def _numbers(found: BiasFinding) -> str:
    if math.isnan(found.low):
        return "–" if math.isnan(found.value) else f"{found.value:.3g}"
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"
