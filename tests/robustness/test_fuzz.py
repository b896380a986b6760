"""Thousands of wrong inputs: each is refused in one sentence of ours, or accepted and then good for something.

Never a crash, a hang, a NaN for a result, a warning of NumPy's or a page of Numba's. Almost all are refused at the door,
before anything is compiled; the few that may run are tiny, and share a kernel.
"""

from __future__ import annotations

import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import ANYTHING, ARRAYS, DOORS, GAUSS, SGNHT, STATE, trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sgmcmc as sg
from sgmcmc.run import lanes, scheduler
from sgmcmc.samplers import ask_and_tell as samplers

HOME = str(Path(sg.__file__).parent)
PER_DOOR, OF_SAMPLE, OF_TRACES, OF_RUNS = 40, 700, 150, 40
assert PER_DOOR * len(DOORS) + OF_SAMPLE + OF_TRACES + OF_RUNS >= 2000


def cases(number: int) -> Any:
    everything = list(HealthCheck)
    return settings(
        derandomize=True, max_examples=number, deadline=None, database=None, suppress_health_check=everything
    )


class ReachedError(Exception):
    """A kernel was about to be called: the input was accepted."""


@pytest.fixture
def _no_kernels(monkeypatch):
    def reached(*args, **options):
        raise ReachedError

    monkeypatch.setattr(scheduler.Job, "advance", reached)
    monkeypatch.setattr(lanes.LaneGroup, "advance", reached)
    monkeypatch.setattr(lanes.LaneGroup, "prepare", reached)
    monkeypatch.setattr(samplers, "update_once", reached)
    monkeypatch.setattr(samplers, "draw_momenta", reached)


def judge(call: Any, given_names: Any, changes: dict[str, Any]) -> Any:
    """The result of a call, or None if it was refused as it should be."""
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # of a stiff kinetics: ours
            return call()
    except ReachedError:
        return None
    except OSError:
        assert "path" in given_names  # there is no such file: the system's own words
        return None
    except (ValueError, TypeError) as error:
        told = str(error)
        assert "\n" not in told
        assert 10 < len(told) < 400
        assert any(name in told for name in (*given_names, *(type(v).__name__ for v in changes.values()))), told
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        assert place.startswith(HOME), told
        return None
    finally:
        assert time.perf_counter() - begin < 5.0


def numbers_of(value: Any) -> list[float]:
    """Every float in a part, a model or a sampler."""
    if isinstance(value, tuple):
        return [x for part in value for x in numbers_of(part)]
    if isinstance(value, np.ndarray):
        return [float(x) for x in value.ravel()] if value.dtype.kind == "f" else []
    if isinstance(value, sg.Sampler):
        return [x for part in vars(value).values() for x in numbers_of(part)]
    return [float(value)] if isinstance(value, float | np.floating) else []


@pytest.mark.usefixtures("_no_kernels")
@pytest.mark.parametrize("door", DOORS)
def test_a_door_refuses_in_one_sentence_or_gives_something_without_nan(door):
    call, right = DOORS[door]

    @cases(PER_DOOR)
    @given(st.dictionaries(st.sampled_from(sorted(right)), ANYTHING, min_size=1, max_size=2))
    def knock(changes):
        made = judge(lambda: call(**(right | changes)), right, changes)
        if isinstance(made, sg.Sampler):
            judge(lambda: made.dynamics(3), right | {"scale": 0}, changes)
        if door not in ("ess", "r_hat", "hdi", "energy", "gradient", "Trace"):  # which may say NaN, and mean it
            assert not np.isnan(numbers_of(made)).any()

    knock()


RIGHT: dict[str, Any] = {
    "model": GAUSS, "sampler": SGNHT, "draws": 10, "warmup": 3, "chains": 2, "batch_size": None, "minibatch": "replacement",
    "seed": 1, "init": None, "thin": 1, "dtype": np.float64, "device": "cpu", "threads": 1, "progress": False,
    "on_divergence": "raise", "gradient_noise": 0.0, "clip_gradient": None,
}  # fmt: skip


@pytest.mark.usefixtures("_no_kernels")
def test_sample_refuses_in_one_sentence_before_anything_is_compiled():
    @cases(OF_SAMPLE)
    @given(st.dictionaries(st.sampled_from(sorted(RIGHT)), ANYTHING, min_size=1, max_size=2))
    def knock(changes):
        assert judge(lambda: sg.sample(**(RIGHT | changes)), RIGHT, changes) is None

    knock()


@pytest.mark.usefixtures("_no_kernels")
def test_a_trace_with_a_strange_end_is_refused_as_a_start():
    names = [*STATE.arrays._fields, "step", "before"]

    @cases(OF_TRACES)
    @given(
        st.dictionaries(st.sampled_from(names), ARRAYS, max_size=2), st.sampled_from([{}, {"seed": None}, {"seed": 1}])
    )
    def knock(changes, info):
        strange = trace(final=trace().final | changes, info=info)
        made = judge(lambda: sg.sample(**(RIGHT | {"init": strange})), RIGHT, changes)
        assert made is None

    knock()


SMALL = {
    "draws": st.integers(1, 8),
    "warmup": st.integers(0, 8),
    "thin": st.integers(1, 3),
    "chains": st.integers(1, 3),
    "seed": st.integers(0, 2**64 - 1),
    "init": st.one_of(st.none(), st.floats(-1e300, 1e300), st.just(np.full(3, 1e-300))),
    "gradient_noise": st.one_of(st.just(0.0), st.floats(0.0, 1e300)),
    "clip_gradient": st.one_of(st.none(), st.floats(5e-324, 1e308)),
    "threads": st.integers(1, 4),
}


def test_what_is_accepted_runs_to_finite_draws_or_says_that_it_diverged():
    outcomes = []

    @cases(OF_RUNS)
    @given(
        st.fixed_dictionaries(SMALL),
        st.floats(1e-300, 1e300),
        st.floats(1e-300, 1e300),
        st.one_of(st.just(1.0), st.floats(5e-324, 1e300)),
        st.sampled_from(["raise", "drop"]),
    )
    def run(options, step_size, diffusion, scale, on_divergence):
        options = RIGHT | options | {"on_divergence": on_divergence}
        try:
            sampler = sg.SGNHT(step_size, diffusion=diffusion, scale=scale)
            made = sg.sample(**(options | {"sampler": sampler}))
        except sg.DivergenceError:
            outcomes.append("diverged")
            return
        assert np.isfinite(made.draws).all()
        outcomes.append("finite")

    run()
    assert {"diverged", "finite"} <= set(outcomes)


# ---- the test of these tests -------------------------------------------------------------------------------------------


def test_the_judge_sees_what_is_not_of_ours():
    def raises(error):
        def call():
            raise error

        return call

    for wrong in (KeyError("x"), RuntimeError("draws"), AttributeError("draws"), OverflowError("draws")):
        with pytest.raises(type(wrong)):
            judge(raises(wrong), RIGHT, {})
    for wrong in (
        ValueError("draws\n=1 is out of range"),
        TypeError("what is this thing"),
        ValueError("draws=1 of another file"),
    ):
        with pytest.raises(AssertionError):
            judge(raises(wrong), RIGHT, {})
    with pytest.raises(RuntimeWarning):
        judge(lambda: np.float64(1e308) * 10.0, RIGHT, {})
    assert judge(lambda: 3, RIGHT, {}) == 3
    assert np.isnan(numbers_of(sg.priors.Gaussian._make((np.nan, 1.0)))).any()
