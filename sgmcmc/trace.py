"""The trace: the draws of a run, the facts about it, and ways to look at them, to hand them on and to keep them.

A saved trace is an uncompressed ``.npz`` of plain arrays and one JSON text. It holds no code, it appears under its name
only when it is complete, and each array in it is measured against the size of the file before memory is taken for it.
"""

from __future__ import annotations

import html
import json
import math
import os
import secrets
import struct
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sgmcmc.checks import any_array, numbers_in, show

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Trace"]

_FORMAT, _VERSION = "sgmcmc.trace", 1
_ARRAYS = ("draws", "kinetic_temperature", "configurational_temperature")
_ROWS_SHOWN = 20  # in a notebook: more parameters than this are a job for summary()


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The draws of a run and the facts about it.

    draws: array (chain, draw, dim).
    info: facts of the run that JSON can hold (sampler, model, seed, steps per second, versions, …).
    kinetic_temperature: E[p K'(p)] per chain, NaN without momentum; the target's temperature if all is well.
    configurational_temperature: E[θ·U'(θ)] / dim per chain; the target's temperature too.
    final: the arrays of the last state, by name.
    names: names of the parameters, ``theta[0]``, ``theta[1]``, … if none are given.
    """

    draws: NDArray[Any]
    info: dict[str, Any]
    kinetic_temperature: NDArray[np.float64]
    configurational_temperature: NDArray[np.float64]
    final: dict[str, NDArray[Any]]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        draws = any_array("draws", self.draws)
        if draws.ndim != 3 or draws.dtype.kind != "f":
            raise ValueError(f"draws is {draws.dtype} of shape {draws.shape}; give floats of shape (chain, draw, dim)")
        object.__setattr__(self, "draws", draws)
        for name in ("info", "final"):
            if not isinstance(getattr(self, name), dict):
                raise TypeError(f"{name}={show(getattr(self, name))} is not a dictionary; give one, by name")
        for name in _ARRAYS[1:]:
            temperature = numbers_in(name, getattr(self, name))
            if temperature.shape != draws.shape[:1]:
                raise ValueError(
                    f"{name} has shape {temperature.shape}; give one number for each of {len(draws)} chains"
                )
            object.__setattr__(self, name, temperature)
        if not isinstance(self.names, tuple | list) or not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"names={show(self.names)} are not names; give a tuple of texts")
        names = tuple(self.names) if len(self.names) > 0 else tuple(f"theta[{i}]" for i in range(self.dim))
        if len(names) != self.dim or len(set(names)) != self.dim:
            raise ValueError(f"names holds {len(set(names))} different names; give {self.dim}, one for each parameter")
        object.__setattr__(self, "names", names)
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
        numbers = self.info.get("chains", range(self.chains))
        if not isinstance(numbers, list | tuple | range) or not all(type(c) is int and 0 <= c < 2**32 for c in numbers):
            raise ValueError(f"info['chains']={show(numbers)} are no numbers of chains; give a list of whole numbers")
        return list(numbers)

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
            attrs={"posterior": {"inference_library": "sgmcmc", "info": _to_json(self.info)}},
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to `path` (an ``.npz``): an old file there stays as it is until the new one is complete."""
        header = {"format": _FORMAT, "version": _VERSION, "info": self.info, "names": self.names}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"final/{name}": np.asarray(value) for name, value in self.final.items()}
        _write(Path(path), {"header": np.array(_to_json(header)), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read what `save` wrote, bit for bit; ValueError for any other file."""
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path={show(path)} is not a path; give a text or a pathlib.Path")
        arrays, header = _read(Path(path))
        final = {name.removeprefix("final/"): value for name, value in arrays.items() if name.startswith("final/")}
        try:
            draws, kinetic, configurational = (arrays[name] for name in _ARRAYS)
            return cls(draws, header["info"], kinetic, configurational, final, header["names"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path} is a damaged trace: {_reason(error)}") from error

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


def _to_json(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"info holds {show(value)}; give what JSON can hold: numbers, texts, lists and dictionaries")


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """All or nothing: a neighbour file is written, flushed to the disk and then given the name."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "xb") as file:
            np.savez(file, allow_pickle=False, **arrays)  # type: ignore[arg-type,unused-ignore]
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_sizes(archive, os.fstat(file.fileno()).st_size)
                header = _header(archive)
                return {m.filename.removesuffix(".npy"): _array(archive, m) for m in archive.infolist()}, header
        except _UNREADABLE as error:
            raise ValueError(f"{path} is not a complete file of Trace.save: {_reason(error)}") from error


# What zipfile, numpy and json raise on bytes that nobody wrote on purpose; RuntimeError is an encrypted member.
_UNREADABLE = (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError, struct.error, RuntimeError, MemoryError)


def _reason(error: BaseException) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """What the archive says that it holds must fit into the file, every member in bytes of its own."""
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError(f"it promises more than its {size} bytes")


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if "header.npy" not in archive.namelist():
        raise ValueError("it has no header")
    header = json.loads(str(_array(archive, archive.getinfo("header.npy"))))
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"its header does not say {_FORMAT}")
    if header.get("version") != _VERSION:
        raise ValueError(f"it has format version {header.get('version')!r}, and this sgmcmc reads {_VERSION}")
    return header


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, after its promised size is found equal to the size that is there."""
    with archive.open(member) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's, about the text of a damaged array
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename} is not an array of version 1.0")
        shape, _, dtype = npy.read_array_header_1_0(file)
        if dtype.kind not in "fiubU" or file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{member.filename} promises {dtype} of shape {shape}, which it does not hold")
    with archive.open(member) as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array
