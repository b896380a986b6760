"""Joining: parts of a run are the run, draw by draw; and what would come out if fields were joined one by one or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.trace.joining import SEGMENTS, joined, pooled

MODEL = sg.models.Gaussian(np.zeros(2), np.ones(2))
OPTIONS = {"seed": 3, "chains": 4, "progress": False, "warn": False}


def parts_of(sampler, lengths, warmup=50, **options):
    options = OPTIONS | options
    parts = [sg.sample(MODEL, sampler, lengths[0], warmup=warmup, **options)]
    for draws in lengths[1:]:
        parts.append(sg.sample(MODEL, sampler, draws, warmup=0, init=parts[-1], **options))
    return parts


def test_the_parts_of_a_run_are_the_run():
    sampler = sg.SGHMC(sg.schedules.PolynomialDecay(0.3, 0.5, 10.0))
    whole = sg.sample(MODEL, sampler, 600, warmup=50, **OPTIONS)
    parts = parts_of(sampler, (100, 1, 299, 200))
    one = joined(parts)
    assert (one.draws == whole.draws).all()
    assert (one.weights == whole.weights).all()
    assert len(np.unique(one.weights)) == 600
    assert (one.final["theta"] == whole.final["theta"]).all()
    for name in ("steps", "gradient_evaluations"):
        assert one.info[name] == whole.info[name]
    assert one.info["seconds"] == pytest.approx(sum(p.info["seconds"] for p in parts))
    assert np.isnan(parts[1].kinetic_temperature).all()  # of one step nothing is measured
    assert abs(one.kinetic_temperature / whole.kinetic_temperature - 1.0).max() < 0.02  # a part begins one step later
    assert one.expectation(lambda x: x[0] ** 2) == pytest.approx(whole.expectation(lambda x: x[0] ** 2), rel=1e-12)
    assert (one.by_coordinate.coordinates == whole.by_coordinate.coordinates).all()
    assert one.by_coordinate.values.shape[1] <= SEGMENTS
    with pytest.raises(ValueError, match="no step sizes of 600 draws"):  # the control: draws alone
        replace(parts[-1], draws=one.draws, parameters=one.layout)


def test_temperatures_of_short_parts_are_those_of_a_long_run_and_their_mean_is_not():
    parts = parts_of(sg.SGHMC(0.05), [3] * 400)
    one = joined(parts)
    mean = one.configurational_temperature.mean()
    assert one.by_coordinate.values.mean() == pytest.approx(
        mean, rel=0.02
    )  # of the pooled segments: nearly equally long
    assert abs(mean - (one.draws**2).mean()) < 0.15  # of these draws, whose right variance is 1; centres are noisy
    assert np.mean([p.configurational_temperature.mean() for p in parts]) < 0.2  # the control: each from where it began
    assert one.by_coordinate.values.shape == (4, SEGMENTS, 2)


def test_one_chain_in_parts_has_no_temperatures_by_coordinate():
    assert joined(parts_of(sg.SGHMC(0.2), (40, 40), chains=1)).by_coordinate is None


def test_parts_count_by_their_time():
    a, b = parts_of(sg.SGHMC(0.2), (100, 100))
    b = replace(b, info=b.info | {"thin": 3}, parameters=b.layout)
    found = joined([a, b]).kinetic_temperature
    assert found == pytest.approx(0.25 * a.kinetic_temperature + 0.75 * b.kinetic_temperature, rel=1e-12)
    plain = 0.5 * (a.kinetic_temperature + b.kinetic_temperature)
    assert abs(found - plain).max() > 1e-3  # the control


def test_chains_that_a_later_part_has_lost_are_left_out():
    a, b = parts_of(sg.SGHMC(0.2), (20, 20))
    kept = [0, 1, 3]
    lost = sg.Trace(
        b.draws[kept],
        b.info | {"chains": kept, "diverged": {"2": 61}},
        b.kinetic_temperature[kept],
        b.configurational_temperature[kept],
        {name: array[kept] for name, array in b.final.items()},
    )
    one = joined([a, lost])
    assert one.chain_numbers == kept
    assert one.info["diverged"] == {"2": 61}
    assert (one.draws == np.concatenate((a.draws[kept], b.draws[kept]), axis=1)).all()
    assert one.by_coordinate is None  # the last part has none
    with pytest.raises(ValueError, match=r"of chains \[0, 1, 2, 3\] did not go on from one of \[0, 1, 3\]"):
        joined([lost, b])


def test_parts_without_draws_and_a_part_alone_are_what_they_were():
    (a,) = parts_of(sg.SGHMC(0.2), (20,))
    assert joined([a]) is a
    none = replace(a, draws=a.draws[:, :0], weights=None, parameters=a.layout)
    assert joined([none, none]) is none
    both = joined([none, a])
    assert (both.draws == a.draws).all()
    assert (both.kinetic_temperature == a.kinetic_temperature).all()
    moments = sg.sample(MODEL, sg.SGHMC(0.2), 20, keep="moments", **OPTIONS)
    with pytest.raises(ValueError, match="have no draws to be joined"):
        joined([moments, moments])


def test_segments_are_pooled_by_their_lengths():
    values = np.arange(6.0).reshape(1, 6, 1)
    assert (pooled(values, np.ones(6)) == values).all()
    short = pooled(values, np.array([1.0, 1.0, 2.0, 2.0, 1.0, 1.0]))
    assert short[0, :, 0] == pytest.approx([0.5, 2.0, 3.0, 4.5])
    many = pooled(np.arange(1000.0).reshape(1, 1000, 1), np.ones(1000))
    assert many.shape == (1, SEGMENTS, 1)
    assert many.mean() == pytest.approx(499.5, rel=0.01)
