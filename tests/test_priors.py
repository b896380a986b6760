"""Priors: densities that integrate to one, slopes that are their derivatives, and what they refuse."""

from __future__ import annotations

import math
import pickle
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from sgmcmc.dispatch import implements
from sgmcmc.kernels import kernel
from sgmcmc.priors import Flat, Gaussian, Laplace, energy, require_prior, slope

PRIORS = [Gaussian(), Gaussian(0.3, mean=-1.2), Gaussian(scale=25.0), Laplace(), Laplace(0.4)]
POINTS = [-7.5, -1.2, -1e-3, 1e-8, 0.25, 3.0]


class Cauchy(NamedTuple):
    scale: float = 1.0


@implements(energy, Cauchy)
def _(prior, x):
    return math.log(math.pi * prior.scale) + math.log(1.0 + (x / prior.scale) * (x / prior.scale))


@implements(slope, Cauchy)
def _(prior, x):
    return 2.0 * x / (prior.scale * prior.scale + x * x)


@kernel
def both(prior: Any, x: Any) -> Any:
    return energy(prior, x), slope(prior, x)


def exact_energy(prior, x):
    x = mpmath.mpf(x)
    if isinstance(prior, Gaussian):
        s, m = mpmath.mpf(prior.scale), mpmath.mpf(prior.mean)
        return (x - m) ** 2 / (2 * s**2) + mpmath.log(s * mpmath.sqrt(2 * mpmath.pi))
    return abs(x) / mpmath.mpf(prior.scale) + mpmath.log(2 * mpmath.mpf(prior.scale))


@pytest.mark.parametrize("prior", [*PRIORS, Cauchy(2.0)], ids=str)
def test_density_integrates_to_one(prior):
    halves = [quad(lambda x: math.exp(-energy(prior, x)), *ends, limit=200)[0] for ends in ((-np.inf, 0), (0, np.inf))]
    assert abs(sum(halves) - 1.0) < 1e-7


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("x", POINTS)
def test_energy_and_slope_are_those_of_mpmath(prior, x):
    with mpmath.workdps(40):
        expected = exact_energy(prior, x), mpmath.diff(lambda t: exact_energy(prior, t), x, h=mpmath.mpf(10) ** -12)
    assert np.allclose(both(prior, x), [float(e) for e in expected], rtol=1e-14, atol=1e-13)
    assert np.allclose((energy(prior, x), slope(prior, x)), [float(e) for e in expected], rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("prior", [Gaussian(2.0, 0.5), Laplace(0.5), Flat()], ids=str)
def test_single_precision_stays_single(prior):
    single = prior._make(np.float32(v) for v in prior)
    for x in (np.float32(-0.75), np.float32(2.5)):
        for found, expected in zip((energy(single, x), slope(single, x)), both(prior, float(x)), strict=True):
            assert type(found) is np.float32
            assert abs(found - expected) < 1e-6
        both(single, x)
    assert both.nopython_signatures[-1].return_type.dtype.name == "float32"


@pytest.mark.parametrize("prior", [*PRIORS, Flat(), Cauchy()], ids=str)
def test_nan_stays_visible(prior):
    assert np.isnan(slope(prior, math.nan))
    assert np.isnan(both(prior, math.nan)[1])


def test_flat_adds_nothing():
    assert both(Flat(), 3.0) == (0.0, 0.0)


def test_slope_of_laplace_at_zero_is_zero():
    assert both(Laplace(0.5), 0.0)[1] == 0.0


def test_priors_print_themselves_in_one_line():
    assert repr(Gaussian(scale=10)) == "Gaussian(scale=10.0, mean=0.0)"
    assert repr(Laplace(2.0)) == "Laplace(scale=2.0)"
    assert repr(Flat()) == "Flat()"


@pytest.mark.parametrize("prior", [Gaussian(2.0, 1.0), Laplace(0.5), Flat()], ids=str)
def test_priors_survive_pickling_with_their_precision(prior):
    single = prior._make(np.float32(v) for v in prior)
    assert pickle.loads(pickle.dumps(prior)) == prior
    copy = pickle.loads(pickle.dumps(single))
    assert type(copy) is type(prior)
    assert [type(v) for v in copy] == [np.float32 for _ in prior]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Gaussian(0.0), ValueError, "scale=0.0 is out of range; give a number above 0"),
        (lambda: Gaussian(-1.0), ValueError, "scale=-1.0 is out of range; give a number above 0"),
        (lambda: Gaussian(math.nan), ValueError, "scale=nan is out of range; give a number above 0"),
        (
            lambda: Gaussian(math.inf),
            ValueError,
            "scale=inf is no density; give a finite number above 0, or priors.Flat()",
        ),
        (lambda: Gaussian("1"), TypeError, "scale='1' is not a number; give a number above 0"),
        (lambda: Gaussian(1.0, math.inf), ValueError, "mean=inf is no mean; give a finite number"),
        (lambda: Gaussian(1.0, [0.0]), TypeError, r"mean=\[0.0\] is not a number; give a real number"),
        (lambda: Laplace(0), ValueError, "scale=0 is out of range; give a number above 0"),
        (lambda: require_prior(10.0), TypeError, "prior=10.0 is a float, not a prior; give one of sgmcmc.priors"),
        (lambda: require_prior(None), TypeError, "prior=None is a NoneType, not a prior"),
    ],
)
def test_what_is_no_prior_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
