"""What to throw at a door: values of every kind that somebody might hand over, and every door there is."""

from __future__ import annotations

import decimal
import fractions
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import sgmcmc as sg
from sgmcmc import diagnostics
from sgmcmc.samplers import ChainState
from sgmcmc.transforms import Above, Below, Bounded, Positive, Real, Simplex

X = np.arange(12.0).reshape(6, 2) / 10.0 - 0.5
Y = np.array([0, 1, 0, 1, 1, 0])
GAUSS = sg.models.Gaussian(np.zeros(3), np.array([1.0, 2.0, 3.0]))
SGNHT = sg.SGNHT(0.1)
STATE = ChainState(SGNHT.start(np.zeros(3)), None, 0, 0.0)
DRAWS = np.random.default_rng(0).normal(size=(2, 20, 3))


def trace(**changes: Any) -> sg.Trace:
    """A trace as a run of SGNHT with 2 chains would leave it."""
    final = {name: np.stack([a] * 2) for name, a in STATE.arrays._asdict().items()}
    final |= {"step": np.full(2, 10), "before": np.full(2, 0.1)}
    parts: dict[str, Any] = {"draws": DRAWS, "info": {"seed": 1, "sampler": repr(SGNHT)}, "final": final} | changes
    return sg.Trace(parts["draws"], parts["info"], np.zeros(2), np.zeros(2), parts["final"])


class Part(NamedTuple):
    """A part that does nothing."""

    number: float = 1.0


class Stubborn:
    """An object that is good for nothing."""

    def __repr__(self) -> str:
        return "Stubborn()\non two lines"

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None  # type: ignore[assignment]


class BadArray:
    """An object that breaks when it is made an array."""

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("no array")


NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**32, 2**62, 2**63, 2**64, -(2**63), 10**30, 10**400, -(10**400)]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e300, 1.7e308, 0.1, 0.5, 1.0, 2.5, float("nan"), float("inf")]),
    st.sampled_from([np.float16(0.5), np.float32(0.1), np.longdouble("1e4000"), np.int8(-1), np.uint64(2**63)]),
    st.sampled_from([decimal.Decimal("0.1"), fractions.Fraction(1, 3), decimal.Decimal("NaN"), 1j, np.complex64(1)]),
)
ARRAYS = st.sampled_from(
    [
        np.zeros(0),
        np.zeros((0, 3)),
        np.zeros(3),
        np.ones((2, 3)),
        np.ones((3, 3)),
        np.full((6, 2), np.nan),
        np.array(0.3),
        np.array([1.0, np.inf, 2.0]),
        np.array([1.0, 1e308, 1e308]),
        np.array([5e-324, 1.0, 1.0]),
        np.array([-1.0, 0.0, 1.0]),
        np.array(["a", "b", "c"]),
        np.array([object(), None, 3], dtype=object),
        np.array([1j, 2.0, 3.0]),
        np.array(["2020-01-01"] * 3, dtype="M8[D]"),
        np.zeros(3, dtype=[("a", float), ("b", int)]),
        np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
        np.ones((6, 2))[::-1],
        np.asfortranarray(X),
        np.ones((2, 2, 2, 2)),
        np.array([True, False, True]),
        np.array([2**63], dtype=np.uint64),
        np.zeros(3, dtype=np.float16),
        np.arange(6),
    ]
)
OTHERS = st.sampled_from(
    [
        None,
        True,
        False,
        np.True_,
        "",
        "cpu",
        "coordinate",
        "0.1",
        "θ",
        b"0.1",
        "x" * 500,
        [],
        (),
        {},
        set(),
        [1.0, "a"],
        [[1.0], [1.0, 2.0]],
        [1.0, 2.0, 3.0],
        [0.1] * 3,
        (0.1, 0.2),
        {"theta": np.zeros(3)},
        {"theta": "zero", 3: None},
        {"p": np.zeros(3)},
        {"xi": 1e400},
        range(3),
        object(),
        Stubborn(),
        BadArray(),
        Part(),
        Part,
        int,
        len,
        lambda: None,
        lambda x: x,
        lambda theta: theta * 1j,
        lambda theta: theta[:-1],
        lambda t: "fast",
        lambda t: -1.0,
        lambda theta, data, rows: theta,
        iter([1.0, 2.0]),
        slice(3),
        Ellipsis,
        NotImplemented,
        np.float64,
        np.dtype("f4"),
        sg,
        SGNHT,
        sg.SGNHT,
        GAUSS,
        trace(),
        trace(final={}),
        sg.priors.Gaussian(2.0),
        sg.kinetics.Relativistic(),
        sg.integrators.Euler(),
        sg.thermostats.NoseHoover(2.0),
        sg.schedules.Constant(0.2),
    ]
)
ANYTHING = st.one_of(NUMBERS, ARRAYS, OTHERS)

REGRESSION: dict[str, Any] = {"X": X, "y": Y, "prior": sg.priors.Gaussian(1.0)}
COLUMNS: dict[str, Any] = {"intercept": False, "standardise": False}
MOMENTUM: dict[str, Any] = {"step_size": 0.1, "temperature": 1.0, "integrator": None, "scale": 1.0}
MONOMIAL: dict[str, Any] = MOMENTUM | {
    "a": 1.0, "softening": None, "gamma": None, "resample_momentum": 100, "resample_thermostat": 100, "order": None,
    "mass": 1.0, "per": "coordinate", "center": None,
}  # fmt: skip


def _square(theta: Any) -> Any:
    return theta


def _half(theta: Any) -> Any:
    with np.errstate(over="ignore"):
        return 0.5 * np.sum(theta**2)


def _rows_gradient(theta: Any, data: Any, rows: Any) -> Any:
    return theta * len(rows)


SQUARE = sg.Potential(_square, dim=3, energy=_half)

# name → (what to call, its arguments as they should be)
DOORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SGLD": (sg.SGLD, MOMENTUM),
    "SGHMC": (sg.SGHMC, MOMENTUM | {"friction": 1.0, "noise_estimate": 0.0}),
    "SGNHT": (sg.SGNHT, MOMENTUM | {"diffusion": 1.0, "gamma": None, "per": "coordinate"}),
    "SGMGT": (sg.SGMGT, MONOMIAL | {"diffusion": 1.0}),
    "SGMGTD": (sg.SGMGTD, MONOMIAL | {"sigma_theta": 0.1, "sigma_p": 1.0, "sigma_xi": 0.1}),
    "Sampler": (
        sg.Sampler,
        MOMENTUM
        | {"kinetics": sg.kinetics.Gaussian(), "thermostat": None, "sigma_theta": 0.0, "sigma_p": 1.0, "sigma_xi": 0.0}
        | {"noise_estimate": 0.0, "resample_momentum": None, "resample_thermostat": None},
    ),
    "kinetics.Gaussian": (sg.kinetics.Gaussian, {"mass": 1.0}),
    "kinetics.MonomialGamma": (sg.kinetics.MonomialGamma, {"a": 1.0, "softening": None, "order": None, "mass": 1.0}),
    "kinetics.Relativistic": (sg.kinetics.Relativistic, {"mass": 1.0, "speed": 1.0}),
    "NoseHoover": (sg.thermostats.NoseHoover, {"gamma": 1.0, "per": "coordinate", "center": None}),
    "Constant": (sg.schedules.Constant, {"step_size": 0.1}),
    "PolynomialDecay": (sg.schedules.PolynomialDecay, {"initial": 0.1, "power": 0.3, "offset": 100.0}),
    "Cyclical": (sg.schedules.Cyclical, {"peak": 0.1, "period": 10, "sampling": 0.5}),
    "priors.Gaussian": (sg.priors.Gaussian, {"scale": 1.0, "mean": 0.0}),
    "priors.Laplace": (sg.priors.Laplace, {"scale": 1.0}),
    "priors.LogGamma": (sg.priors.LogGamma, {"shape": 1.0}),
    "models.Gaussian": (sg.models.Gaussian, {"mean": np.zeros(3), "cov": np.ones(3)}),
    "GaussianMixture": (sg.models.GaussianMixture, {"means": X, "scales": 1.0, "weights": None}),
    "LinearRegression": (sg.models.LinearRegression, REGRESSION | COLUMNS | {"noise": 1.0}),
    "LogisticRegression": (sg.models.LogisticRegression, REGRESSION | COLUMNS),
    "SoftmaxRegression": (sg.models.SoftmaxRegression, REGRESSION | COLUMNS | {"classes": None}),
    "DRBM": (sg.models.DRBM, REGRESSION | {"hidden": 2, "classes": None}),
    "LDA": (
        sg.models.LDA,
        {"indptr": [0, 2, 3], "indices": [0, 1, 2], "counts": [1, 2, 1], "words": 3, "topics": 2}
        | {"alpha": 0.1, "beta": 0.1, "burn": 1, "sweeps": 1, "documents": None},
    ),
    "LSTM": (
        sg.models.LSTM,
        {"x": [0, 2, 1, 1, 2], "offsets": [0, 2, 5], "hidden": 2, "layers": 1, "length": 2, "words": 3}
        | {"embedding": 2, "prior": sg.priors.Gaussian(), "threads": 1},
    ),
    "Potential": (
        sg.Potential,
        {"gradient": _rows_gradient, "dim": 3, "data": X, "prior": None, "energy": None, "n_rows": None},
    ),
    "Potential without data": (sg.Potential, {"gradient": _square, "dim": 3, "prior": None, "energy": _half}),
    "check_gradient": (
        sg.check_gradient,
        {"model": SQUARE, "theta": np.zeros(3), "energy": _half, "rows": None, "tolerance": 1e-5, "seed": 0},
    ),
    "gradient": (SQUARE.gradient, {"theta": np.zeros(3), "rows": None}),
    "energy": (SQUARE.energy, {"theta": np.zeros(3)}),
    "Trace": (
        sg.Trace,
        {"draws": DRAWS, "info": {}, "kinetic_temperature": np.ones(2), "configurational_temperature": np.ones(2)}
        | {"final": {}, "names": ("a", "b", "c")},
    ),
    "Trace.load": (sg.Trace.load, {"path": Path("no such file.npz")}),
    "init": (SGNHT.init, {"theta": np.zeros(3), "seed": 0, "chain": 0, "dtype": None}),
    "step": (SGNHT.step, {"state": STATE, "gradient": np.zeros(3), "inplace": False, "moments": None}),
    "ess": (diagnostics.ess, {"draws": DRAWS[:, :, 0], "kind": "bulk"}),
    "r_hat": (diagnostics.r_hat, {"draws": DRAWS[:, :, 0]}),
    "hdi": (diagnostics.hdi, {"draws": DRAWS[:, :, 0], "prob": 0.9}),
    "Above": (Above, {"low": 0.0, "shape": None}),
    "Below": (Below, {"high": 0.0, "shape": 3}),
    "Bounded": (Bounded, {"low": 0.0, "high": 1.0, "shape": (2, 2)}),
    "Simplex": (Simplex, {"shape": 3}),
    "constrained": (sg.constrained, {"model": SQUARE, "transforms": {"a": Real(), "b": Positive(2)}}),
    "datasets.load": (sg.datasets.load, {"name": "nothing"}),
}
