"""The trace: the draws of a run, the facts about it, and ways to look at them, to hand them on and to keep them.

A saved trace is an uncompressed ``.npz`` of plain arrays and one JSON text. It holds no code, it appears under its name
only when it is complete, and each array in it is measured against the size of the file before memory is taken for it.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import archive
from sgmcmc.archive import to_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KeptMoments", "Trace"]

_FORMAT, _VERSION = "sgmcmc.trace", 1
_ARRAYS = ("draws", "kinetic_temperature", "configurational_temperature")
_MOMENTS = ("moments/n", "moments/mean", "moments/variance")
_ROWS_SHOWN = 20  # in a notebook: more parameters than this are a job for summary()


class KeptMoments(NamedTuple):
    """Moments of draws that were not kept: how many, `n` (chain,), `mean` and `variance` (chain, dim), as `np.var` has it."""

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The draws of a run and the facts about it.

    draws: array (chain, draw, dim).
    info: facts of the run that JSON can hold (sampler, model, seed, steps per second, versions, …).
    kinetic_temperature: E[p K'(p)] per chain, NaN without momentum; the target's temperature if all is well.
    configurational_temperature: E[θ·U'(θ)] / dim per chain; the target's temperature too.
    final: the arrays of the last state, by name.
    moments: with ``keep="moments"``, `n`, `mean` and `variance` of every chain, in place of draws.
    names: names of the parameters, ``theta[0]``, ``theta[1]``, … if none are given.
    """

    draws: NDArray[Any]
    info: dict[str, Any]
    kinetic_temperature: NDArray[np.float64]
    configurational_temperature: NDArray[np.float64]
    final: dict[str, NDArray[Any]]
    names: tuple[str, ...] = ()
    moments: KeptMoments | None = None

    def __post_init__(self) -> None:
        draws = np.asarray(self.draws)
        if draws.ndim != 3 or draws.dtype.kind != "f":
            raise ValueError(f"draws is {draws.dtype} of shape {draws.shape}; give floats of shape (chain, draw, dim)")
        object.__setattr__(self, "draws", draws)
        for name in _ARRAYS[1:]:
            temperature = np.asarray(getattr(self, name), dtype=np.float64)
            if temperature.shape != draws.shape[:1]:
                raise ValueError(
                    f"{name} has shape {temperature.shape}; give one number for each of {len(draws)} chains"
                )
            object.__setattr__(self, name, temperature)
        names = tuple(self.names) if len(self.names) > 0 else tuple(f"theta[{i}]" for i in range(self.dim))
        if len(names) != self.dim or len(set(names)) != self.dim:
            raise ValueError(f"names holds {len(set(names))} different names; give {self.dim}, one for each parameter")
        object.__setattr__(self, "names", names)
        if self.moments is not None and not all(len(m) == self.chains for m in self.moments):
            raise ValueError(f"moments are of {len(self.moments.n)} chains; draws has {self.chains}")
        if len(self.chain_numbers) != self.chains:
            raise ValueError(f"info['chains'] names {len(self.chain_numbers)} chains; draws has {self.chains}")

    @property
    def chains(self) -> int:
        """How many chains there are."""
        return int(self.draws.shape[0])

    @property
    def n_draws(self) -> int:
        """How many draws each chain has."""
        return int(self.draws.shape[1])

    @property
    def dim(self) -> int:
        """How many parameters there are."""
        return int(self.draws.shape[2])

    @property
    def chain_numbers(self) -> list[int]:
        """The number each chain had in the run; there are gaps where a diverged chain was dropped."""
        return [int(c) for c in self.info.get("chains", range(self.chains))]

    def summary(self, hdi_prob: float = 0.94) -> pd.DataFrame:
        """Mean, sd, highest density interval, Monte Carlo error, effective sample sizes and R̂ of every parameter."""
        return _summary(self.draws, self.names, hdi_prob)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per draw, with the index (chain, draw), and one column per parameter."""
        import pandas as pd

        index = pd.MultiIndex.from_product([self.chain_numbers, range(self.n_draws)], names=["chain", "draw"])
        return pd.DataFrame(self.draws.reshape(-1, self.dim), index=index, columns=list(self.names))

    def to_arviz(self) -> Any:
        """An ArviZ ``DataTree`` with the variable ``theta`` over (chain, draw, parameter)."""
        try:
            from arviz_base import from_dict  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise ImportError("to_arviz needs arviz-base and xarray; pip install sgmcmc[arviz]") from error
        return from_dict(
            {"posterior": {"theta": self.draws}},
            dims={"theta": ["parameter"]},
            coords={"chain": self.chain_numbers, "parameter": list(self.names)},
            attrs={"posterior": {"inference_library": "sgmcmc", "info": to_json(self.info)}},
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to `path` (an ``.npz``): an old file there stays as it is until the new one is complete."""
        header = {"format": _FORMAT, "version": _VERSION, "info": self.info, "names": self.names}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"final/{name}": np.asarray(value) for name, value in self.final.items()}
        if self.moments is not None:
            arrays |= {f"moments/{name}": value for name, value in self.moments._asdict().items()}
        archive.write(Path(path), header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read what `save` wrote, bit for bit; ValueError for any other file."""
        arrays, header = archive.read(Path(path), _FORMAT, _VERSION, "a complete file of Trace.save")
        final = {name.removeprefix("final/"): value for name, value in arrays.items() if name.startswith("final/")}
        try:
            draws, kinetic, configurational = (arrays[name] for name in _ARRAYS)
            moments = KeptMoments(*(arrays[m] for m in _MOMENTS)) if _MOMENTS[0] in arrays else None
            return cls(draws, header["info"], kinetic, configurational, final, tuple(header["names"]), moments)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path} is a damaged trace: {archive.reason(error)}") from error

    def plot_trace(self, parameters: Sequence[int | str] | None = None, ax: Any = None) -> NDArray[Any]:
        """Every chain against time, one axes per parameter."""
        from sgmcmc import plots

        return plots.plot_trace(self, parameters, ax)

    def plot_marginals(
        self, truth: Any = None, parameters: Sequence[int | str] | None = None, ax: Any = None
    ) -> NDArray[Any]:
        """The marginal density of each parameter, with its interval and, if given, the true value."""
        from sgmcmc import plots

        return plots.plot_marginals(self, truth, parameters, ax)

    def plot_autocorrelation(
        self, max_lag: int | None = None, parameters: Sequence[int | str] | None = None, ax: Any = None
    ) -> NDArray[Any]:
        """How fast each chain forgets, one axes per parameter."""
        from sgmcmc import plots

        return plots.plot_autocorrelation(self, max_lag, parameters, ax)

    def __repr__(self) -> str:
        return f"<Trace: {self._size()}\n {self._story()}>"

    def _repr_html_(self) -> str:
        shown = _summary(self.draws[:, :, :_ROWS_SHOWN], self.names[:_ROWS_SHOWN], 0.94)
        table = shown.to_html(float_format=lambda x: f"{x:.4g}")
        more = f"<p>… and {self.dim - _ROWS_SHOWN} more parameters</p>" if self.dim > _ROWS_SHOWN else ""
        return f"<b>Trace</b>: {html.escape(self._size())}<br>{html.escape(self._story())}{table}{more}"

    def _size(self) -> str:
        counts = ((self.chains, "chain"), (self.n_draws, "draw"), (self.dim, "parameter"))
        return " × ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts) + f", {self.draws.dtype}"

    def _story(self) -> str:
        info = self.info
        told = [f"{_short(info.get('sampler', 'unknown sampler'))} on {_short(info.get('model', 'unknown model'))}"]
        told += [f"{info['seconds']:.3g} s"] if "seconds" in info else []
        told += [f"{info['steps_per_second']:.3g} steps/s"] if "steps_per_second" in info else []
        told += ["interrupted"] if info.get("interrupted", False) else []
        return ", ".join(told)


def _short(text: Any, most: int = 60) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _summary(draws: NDArray[Any], names: Sequence[str], hdi_prob: float) -> pd.DataFrame:
    import pandas as pd

    from sgmcmc import diagnostics

    rows = []
    for i in range(draws.shape[2]):
        x = draws[:, :, i].astype(np.float64)
        rows.append(
            {
                "mean": _mean(x),
                "sd": _sd(x),
                **dict(zip(("hdi_low", "hdi_high"), diagnostics.hdi(x, hdi_prob), strict=True)),
                "mcse": diagnostics.mcse(x),
                "ess_bulk": diagnostics.ess(x, "bulk"),
                "ess_tail": diagnostics.ess(x, "tail"),
                "r_hat": diagnostics.r_hat(x),
            }
        )
    columns = ["mean", "sd", "hdi_low", "hdi_high", "mcse", "ess_bulk", "ess_tail", "r_hat"]
    return pd.DataFrame(rows, index=list(names), columns=columns, dtype=np.float64)


def _mean(x: NDArray[np.float64]) -> float:
    return float(x.mean()) if x.size > 0 and np.isfinite(x).all() else np.nan


def _sd(x: NDArray[np.float64]) -> float:
    return float(np.std(x, ddof=1)) if x.size > 1 and np.isfinite(x).all() else np.nan
