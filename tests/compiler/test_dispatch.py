"""Open functions choose by type, run as Python, compile, and keep single precision single."""

from __future__ import annotations

import os
from typing import NamedTuple

import numba
import numpy as np
import pytest

from sgmcmc.dispatch import implements, leaf, like, loop, open_function
from sgmcmc.kernels import kernel


class Doubling(NamedTuple):
    by: float


class Adding(NamedTuple):
    by: float


class AddingMore(Adding):
    __slots__ = ()


@open_function
def change(rule, x):
    """What a rule makes of x."""


@implements(change, Doubling)
def _(rule, x):
    return 2.0 * x * rule.by


@implements(change, Adding)
def _(rule, x):
    return x + rule.by


@open_function(on=2)
def meet(one, two):
    """Which pair this is."""


@implements(meet)
def _(one, two):
    return 0


@implements(meet, Doubling)
def _(one, two):
    return 1


@implements(meet, Doubling, Adding)
def _(one, two):
    return 2


FACTOR = 0.1


@leaf
def tenth(x):
    return FACTOR * x + 0.3


@loop
def total(rule, x):
    result = x[0] - x[0]
    for i in range(x.size):
        result += change(rule, tenth(x[i]))
    return result


@kernel
def compiled_total(rule, x):
    return total(rule, x)


@kernel
def compiled_meet(one, two):
    return meet(one, two)


def test_an_open_function_chooses_by_type_in_python_and_in_compiled_code():
    x = np.arange(4.0)
    assert compiled_total(Doubling(1.5), x) == pytest.approx(total(Doubling(1.5), x), rel=1e-15)
    assert compiled_total(Adding(1.5), x) == pytest.approx(total(Adding(1.5), x), rel=1e-15)
    assert total(Doubling(1.0), x) != total(Adding(1.0), x)


def test_a_subclass_inherits_the_implementation_of_its_base():
    assert change(AddingMore(2.0), 1.0) == 3.0
    assert compiled_total(AddingMore(1.5), np.arange(4.0)) == compiled_total(Adding(1.5), np.arange(4.0))


@pytest.mark.parametrize(
    ("one", "two", "expected"), [(Doubling, Adding, 2), (Doubling, Doubling, 1), (Adding, Adding, 0)]
)
def test_the_most_specific_pair_of_types_wins(one, two, expected):
    assert meet(one(1.0), two(1.0)) == expected
    assert compiled_meet(one(1.0), two(1.0)) == expected


@numba.njit(error_model="numpy")  # not a kernel: of one that comes from the disk cache Numba cannot show the assembly
def store_total(rule, x, out):
    out[0] = total(rule, x)


def test_literals_and_globals_do_not_widen_single_precision():
    x, out = np.arange(16, dtype=np.float32), np.zeros(1, np.float32)
    store_total(Doubling(np.float32(1.5)), x, out)
    assembly = store_total.inspect_asm(store_total.signatures[0])
    assert "mulss" in assembly or "mulps" in assembly or "fmadd" in assembly
    assert "cvtss2sd" not in assembly


def test_a_bare_literal_in_a_kernel_body_does_widen_which_is_what_weak_literals_are_for():
    @kernel
    def widened(x):
        return 0.3 * x[0]

    x = np.ones(1, np.float32)
    widened(x)
    assert str(widened.nopython_signatures[0].return_type) == "float64"


def test_like_gives_a_whole_number_the_precision_of_its_exemplar():
    assert type(like(np.float32(1.0), 7)) is np.float32
    assert type(like(1.0, 7)) is np.float64


def test_a_missing_implementation_and_a_wrong_number_of_arguments_are_named():
    class Unknown(NamedTuple):
        x: float

    with pytest.raises(TypeError, match="change has no implementation for Unknown"):
        change(Unknown(1.0), 2.0)
    with pytest.raises(TypeError, match="change takes 2 arguments"):
        implements(change, Unknown)(lambda rule: 1.0)
    with pytest.raises(TypeError, match="open on its first 1"):
        implements(change, Unknown, Unknown)


def test_an_elementwise_function_takes_an_array_from_python():
    from sgmcmc import kinetics, priors

    p = np.array([[-2.0, 0.0, 1.5], [3.0, -0.1, 1e-9]])
    for part, function in ((kinetics.MonomialGamma(2.0), kinetics.velocity), (priors.Laplace(2.0), priors.slope)):
        result = function(part, p)
        assert result.shape == p.shape
        assert result[1, 0] == function(part, 3.0)


@pytest.mark.skipif(os.environ.get("SGMCMC_PLAIN_NUMBA", "0") == "1", reason="the plain way has Numba's own vectors")
def test_kernels_may_use_the_longest_vectors_of_the_processor(tmp_path, monkeypatch):
    from numba import config, njit

    from sgmcmc.kernels import kernel

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))  # what comes from disk cannot be looked at
    wide, plain = kernel(_doubled), njit(_doubled)
    for function in (wide, plain):
        function(np.ones(3))
    attribute = '"prefer-vector-width"="512"'
    assert all(attribute in text for text in wide.inspect_llvm().values())
    assert not any(attribute in text for text in plain.inspect_llvm().values())


def _doubled(x):
    for i in range(x.size):
        x[i] *= 2.0
