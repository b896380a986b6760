"""The trace: the draws of a run, the facts about it, and methods to analyse, export and save them.

A saved trace is an uncompressed ``.npz`` of plain arrays and one JSON text, without code. It gets its name only when it is
complete, and the size of each array is compared with that of the file before memory is allocated.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import any_array, numbers_in, show
from sgmcmc.parameters import Layout, Parameters
from sgmcmc.parameters.names import Names
from sgmcmc.trace import archive
from sgmcmc.trace.measurements import CoordinateTemperatures, KeptMoments, as_weights
from sgmcmc.trace.plot_methods import PlotMethods
from sgmcmc.trace.views import Views

__all__ = ["CoordinateTemperatures", "KeptMoments", "Trace"]

_FORMAT, _VERSION = "sgmcmc.trace", 1
_ARRAYS = ("draws", "kinetic_temperature", "configurational_temperature")
_MOMENTS = ("moments/n", "moments/mean", "moments/variance")
_BY_COORDINATE = ("by_coordinate/coordinates", "by_coordinate/values")


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Views, PlotMethods):
    """The draws of a run and the facts about it.

    Parameters
    ----------
    draws : array (chain, draw, dim)
    info : dict
        Facts of the run that JSON can hold (sampler, model, seed, steps per second, versions, …).
    kinetic_temperature : array (chain,)
        E[p K'(p)], NaN without momentum; the target's temperature if all is well.
    configurational_temperature : array (chain,)
        E[θ·U'(θ)] / dim; the target's temperature too.
    final : dict
        The arrays of the last state, by name.
    names : sequence of str
        A name for each number in θ, ``theta[0]``, ``w[0,2]``, …, made when asked for; they follow from `parameters` if
        that is given.
    parameters : dict, optional
        Names and shapes of what θ is made of, ``{"w": (10, 3), "b": (3,)}``; ``trace["w"]`` is (chain, draw, 10, 3).
    model : optional
        What was sampled, for `energy`, `plot_energy` and `to_arviz`; neither saved nor pickled.
    moments : KeptMoments, optional
        With ``keep="moments"``, `n`, `mean` and `variance` of every chain, in place of draws.
    rerun : optional
        Repeats the run with another step size, for `bias_report`; neither saved nor pickled.
    weights : array (draw,), optional
        The step size h_t of every draw, for averages Σ h_t f(θ_t) / Σ h_t; equal for a constant step.
    by_coordinate : CoordinateTemperatures, optional
        The configurational temperature of single coordinates, in segments of the run; None where they were not measured
        (on GPUs).

    Examples
    --------
    >>> options = {"draws": 200, "chains": 2, "seed": 1, "progress": False, "warn": False}
    >>> trace = sg.sample(sg.models.Gaussian(np.zeros(2)), sg.SGNHT(0.5), **options)
    >>> trace["theta[1]"].shape
    (2, 200)
    """

    draws: NDArray[Any]
    info: dict[str, Any]
    kinetic_temperature: NDArray[np.float64]
    configurational_temperature: NDArray[np.float64]
    final: dict[str, NDArray[Any]]
    names: Sequence[str] = ()
    parameters: Parameters | Layout | None = None
    model: Any = None
    moments: KeptMoments | None = None
    rerun: Any = None
    weights: NDArray[np.float64] | None = None
    by_coordinate: CoordinateTemperatures | None = None
    layout: Layout = field(init=False)

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
        layout = self._read_layout()
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "names", layout.names)
        object.__setattr__(self, "parameters", layout.shapes)
        if self.moments is not None and not all(len(m) == self.chains for m in self.moments):
            raise ValueError(f"moments are of {len(self.moments.n)} chains; draws has {self.chains}")
        self._check_measured()
        if len(self.chain_numbers) != self.chains:
            raise ValueError(f"info['chains'] names {len(self.chain_numbers)} chains; draws has {self.chains}")

    def _check_measured(self) -> None:
        object.__setattr__(self, "weights", as_weights(self.weights, self.n_draws))
        if self.by_coordinate is not None:
            object.__setattr__(self, "by_coordinate", self.by_coordinate.checked(self.chains))

    def _read_layout(self) -> Layout:
        if self.parameters is not None:
            layout = Layout.read(self.parameters, least=0)
            if layout.dim != self.dim:
                raise ValueError(f"parameters are {layout.dim} numbers; draws has {self.dim}")
            return layout
        if not isinstance(self.names, tuple | list | Names) or not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"names={show(self.names)} are not names; give a tuple of texts")
        names = tuple(self.names)
        if len(names) == 0:
            return Layout({"theta": (self.dim,)})
        if len(names) != self.dim or len(set(names)) != self.dim:
            raise ValueError(f"names holds {len(set(names))} different names; give {self.dim}, one for each parameter")
        return Layout.of_names(names)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The draws of a parameter: (chain, draw, *shape) of ``trace["w"]``, (chain, draw) of ``trace["w[0,2]"]``."""
        if not isinstance(name, str):
            raise TypeError(f"name={show(name)} is not a text; give the name of a parameter, or index trace.draws")
        try:
            taken: NDArray[Any] = self.layout.take(self.draws, name)
        except ValueError as error:
            raise KeyError(str(error)) from None
        return taken

    def __contains__(self, name: object) -> bool:
        return name in self.layout.axes or name in self.names

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {
            "model": None,
            "rerun": None,
        }  # the data may be large, and the other side may not want it

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to `path`: an old file there stays as it is until the new one is complete.

        Parameters
        ----------
        path : path of an ``.npz`` file

        Examples
        --------
        >>> trace.save("run.npz")
        """
        target = _path(path)
        header = {"format": _FORMAT, "version": _VERSION, "info": self.info}
        header |= {"names": (), "parameters": self.layout.axes}  # older files have the names too, or these alone
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"final/{name}": np.asarray(value) for name, value in self.final.items()}
        if self.moments is not None:
            arrays |= {f"moments/{name}": value for name, value in self.moments._asdict().items()}
        if self.by_coordinate is not None:
            arrays |= dict(zip(_BY_COORDINATE, self.by_coordinate, strict=True))
        weights = np.asarray(self.weights)
        arrays["weights"] = weights[:1].reshape(()) if weights.size and (weights == weights[0]).all() else weights
        archive.write(target, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Returns the trace that `save` wrote, bit for bit; ValueError for any other file.

        Parameters
        ----------
        path : path of an ``.npz`` file

        Returns
        -------
        Trace

        Examples
        --------
        >>> trace.save("run.npz")
        >>> bool((sg.Trace.load("run.npz").draws == trace.draws).all())
        True
        """
        arrays, header = archive.read(_path(path), _FORMAT, _VERSION, "a complete file of Trace.save")
        final = {name.removeprefix("final/"): value for name, value in arrays.items() if name.startswith("final/")}
        try:
            draws, kinetic, configurational = (arrays[name] for name in _ARRAYS)
            names, declared = header["names"], header.get("parameters")
            moments = KeptMoments(*(arrays[m] for m in _MOMENTS)) if _MOMENTS[0] in arrays else None
            more: dict[str, Any] = {"moments": moments, "weights": arrays.get("weights")}  # older files have no weights
            if _BY_COORDINATE[1] in arrays:
                more["by_coordinate"] = CoordinateTemperatures(*(arrays[name] for name in _BY_COORDINATE))
            return cls(draws, header["info"], kinetic, configurational, final, names, declared, **more)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path} is a damaged trace: {archive.reason(error)}") from error

    def __repr__(self) -> str:
        return f"<Trace: {self._size()}\n {self._story()}>"

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


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={show(path)} is not a path; give a text or a pathlib.Path")
    return Path(path)


def _short(text: Any, most: int = 60) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
