"""A comparison written down: a TOML file with a model or a data set, samplers and their parameters, budget, seeds, folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sgmcmc.datasets as datasets
import sgmcmc.models as models
import sgmcmc.priors as priors
from sgmcmc.samplers import Sampler, presets
from sgmcmc.trace import Trace

__all__ = ["EXAMPLE", "Config", "read_config"]

EXAMPLE = """\
# sgmcmc compare compare.toml
#
# Five samplers on a potential with five wells, at temperature 2, with noisy gradients.

budget = 1_000_000        # gradient evaluations of each run, all its chains together; or a time: "10 s"
seeds = 3                 # how many, or which: [1, 2, 3]
chains = 4                # per run
warmup = 0.2              # the share of the budget spent before the first draw
temperature = 2.0         # of the target exp(-U/T)
gradient_noise = 10.0     # N(0, 2B) on every gradient; for a model with data take batch_size = 32 instead
reference = "exact"       # or "long_run.npz" (a saved trace), or { mean = [0.0], sd = [1.0] }; leave out for no errors
out = "sgmcmc-comparison" # the folder for tables and picture

[model]
name = "FiveWell"         # one of sgmcmc.models; what else is in this section goes to it
# name = "LogisticRegression"
# data = "rows.csv"       # beside this file, with a head line; or dataset = "australian" (sgmcmc.datasets)
# response = "y"          # the column with the labels
# intercept = true
# standardise = true
# prior = { name = "Gaussian", scale = 10.0 }

[samplers.SGLD]           # a name of your choice; if it is not that of a sampler, add: sampler = "SGLD"
step_size = 0.005
temperature = 2.0

[samplers.SGHMC]
step_size = 0.05
temperature = 2.0

[samplers.SGNHT]
step_size = 0.05
temperature = 2.0

[samplers."SGMGT, a = 1"]
sampler = "SGMGT"
step_size = 0.05
a = 1.0
temperature = 2.0

[samplers."SGMGT-D, a = 1"]
sampler = "SGMGTD"
step_size = 0.05
a = 1.0
temperature = 2.0
"""

_RUN = (
    "budget",
    "seeds",
    "chains",
    "draws",
    "warmup",
    "temperature",
    "gradient_noise",
    "batch_size",
    "minibatch",
    "metrics",
)
_KEYS = (*_RUN, "reference", "out", "model", "samplers")
_LARGE = ("DRBM", "LDA", "LSTM")  # models with data of their own kind: not for a file of settings
_PRESETS = {name: getattr(presets, name) for name in presets.__all__} | {"SGMGT-D": presets.SGMGTD}


class Config(NamedTuple):
    """What `compare` gets, and where its results go."""

    samplers: dict[str, Sampler]
    model: Any
    options: dict[str, Any]
    out: Path | None


def read_config(path: Path) -> Config:
    """The comparison that a file describes; ValueError, in one sentence with the place in the file, for what makes no sense."""
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    unknown = [key for key in content if key not in _KEYS]
    if unknown:
        raise ValueError(f"{path} has the unknown key {unknown[0]!r}; there are {', '.join(_KEYS)}")
    for section in ("model", "samplers"):
        if not isinstance(content.get(section), dict) or len(content[section]) == 0:
            raise ValueError(f"{path} has no section [{section}]; sgmcmc compare --example prints a file to start from")
    options = {key: content[key] for key in _RUN if key in content}
    if "reference" in content:
        options["reference"] = _reference(content["reference"], path.parent)
    samplers = {name: _sampler(name, given) for name, given in content["samplers"].items()}
    out = content.get("out")
    return Config(
        samplers, _model(content["model"], path.parent), options, None if out is None else path.parent / str(out)
    )


def _sampler(name: str, given: Any) -> Sampler:
    if not isinstance(given, dict):
        raise ValueError(f"[samplers.{name}] is {given!r}; give a section with a step_size")
    kind = given.get("sampler", name)
    if kind not in _PRESETS:
        raise ValueError(f"[samplers.{name}] is of no known sampler; add sampler = one of {', '.join(presets.__all__)}")
    made: Sampler = _built(f"[samplers.{name}]", _PRESETS[kind], {k: v for k, v in given.items() if k != "sampler"})
    return made


def _built(section: str, make: Any, given: Mapping[str, Any]) -> Any:
    try:
        return make(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{section}: {error}") from error


def _model(given: dict[str, Any], folder: Path) -> Any:
    rest = dict(given)
    name = rest.pop("name", "LogisticRegression" if "data" in rest or "dataset" in rest else None)
    if name not in models.__all__ or name in _LARGE:
        known = ", ".join(m for m in models.__all__ if m not in _LARGE)
        raise ValueError(f"[model] has name = {name!r}; choose one of {known}")
    if "prior" in rest:
        rest["prior"] = _prior(rest["prior"])
    if "data" in rest and "dataset" in rest:
        raise ValueError("[model] has data and dataset; give one of them")
    if "data" in rest:
        rest |= _from_csv(folder / str(rest.pop("data")), rest.pop("response", None))
    elif "dataset" in rest:
        found = datasets.load(rest.pop("dataset"))
        rest |= {"X": found.X, "y": found.y}
    return _built("[model]", getattr(models, name), rest)


def _prior(given: Any) -> Any:
    name = given.get("name") if isinstance(given, dict) else None
    if name not in ("Gaussian", "Laplace", "Flat"):
        raise ValueError(
            f'[model] has prior = {given!r}; give {{ name = "Gaussian", scale = 10.0 }}, or Laplace, or Flat'
        )
    return _built("[model] prior", getattr(priors, name), {k: v for k, v in given.items() if k != "name"})


def _from_csv(path: Path, response: Any) -> dict[str, Any]:
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None
    if response not in table.columns:
        raise ValueError(f"[model] has response = {response!r}; choose a column of {path}: {', '.join(table.columns)}")
    words = [c for c in table.columns if not pd.api.types.is_numeric_dtype(table[c])]
    if words:
        raise ValueError(f"{path} has the column {words[0]!r}, which holds no numbers; leave it out or encode it")
    return {"X": table.drop(columns=response).astype(np.float64), "y": table[response].to_numpy()}


def _reference(given: Any, folder: Path) -> Any:
    if given == "exact":
        return given
    if isinstance(given, str):
        return Trace.load(folder / given)
    if isinstance(given, dict) and set(given) == {"mean", "sd"}:
        return given["mean"], given["sd"]
    raise ValueError(
        f'reference = {given!r}; give "exact", the file of a saved trace, or {{ mean = [...], sd = [...] }}'
    )
