"""Forms for GPUs: chosen there and nowhere else, with the same results."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from sgmcmc.dispatch import implements, leaf, open_function, simulate_device
from sgmcmc.kernels import kernel
from sgmcmc.kinetics import softening
from sgmcmc.rng.philox4x32 import philox

KNOWN = [  # Random123's answers: counter, key, words
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
DEVICE_PHILOX = philox.device_forms[()]
compiled = numba.njit(DEVICE_PHILOX)


@leaf
def which(x):
    return 1


@implements(which, device=True)
def _(x):
    return 2


@kernel
def compiled_which(x):
    return which(x)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_the_philox_of_gpus_gives_the_known_answers(counter, key, answer):
    for function in (DEVICE_PHILOX, compiled):
        words = function(*(np.uint32(c) for c in counter), *(np.uint32(k) for k in key))
        assert tuple(int(w) for w in words) == answer


def test_a_philox_with_another_multiplier_does_not(monkeypatch):
    from sgmcmc.rng import philox4x32 as module

    wrong = tuple(np.uint64(int(m) + 2) for m in module._MULTIPLIERS)
    monkeypatch.setattr(module, "_MULTIPLIERS", wrong)
    words = DEVICE_PHILOX(*(np.uint32(0),) * 6)
    assert tuple(int(w) for w in words) != KNOWN[0][2]


def series(forms, kind):
    """Σ_k t^{r+1+2k}/(r+1+2k) for a few orders and t from 0 to 1/2, in one form."""
    return [forms[()](kind(r), kind(t)) for r in (0.0, 0.5, 2.0, 7.3, 40.0) for t in np.linspace(0.0, 0.5, 41)]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_series_of_gpus_is_that_of_the_cpu_bit_for_bit(kind, monkeypatch):
    form = softening._series
    here, there = series(form.implementations, kind), series(form.device_forms, kind)
    assert all(type(x) is kind for x in there)
    np.testing.assert_array_equal(here, there)
    assert np.isnan(form.device_forms[()](kind(2.0), kind(np.nan)))
    monkeypatch.setattr(softening, "TERMS", 2)
    assert (np.array(here) != series(form.device_forms, kind)).any()


def test_a_form_for_gpus_is_taken_where_a_gpu_is_simulated_and_nowhere_else():
    assert which(0.0) == compiled_which(0.0) == 1
    simulate_device()
    try:
        assert which(0.0) == 2
        assert compiled_which(0.0) == 1
    finally:
        simulate_device(False)
    assert which(0.0) == 1


def test_a_form_for_gpus_is_another_form_of_something():
    @open_function
    def nothing_yet(x):
        """Not implemented for anything."""

    with pytest.raises(TypeError, match="nothing_yet has no implementation for"):
        implements(nothing_yet, np.float64, device=True)(lambda x: x)
