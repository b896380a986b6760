"""Right at every scale: samplers in other units, with other schedules, with gradient noise that is measured, not guessed.

Statistical checks use |z| < 5 over independent chains, in fewer than 60 places: a false alarm once in 30,000 runs.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.bias.foreseen import foreseen
from sgmcmc.minibatch import EpochShuffle, FullData, WithoutReplacement, WithReplacement, variance_share
from sgmcmc.schedules import Cyclical, PolynomialDecay
from sgmcmc.thermostats import gradient_noise

QUIET = {"progress": False, "warn": False}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(size=600)
LINEAR = sg.models.LinearRegression(X, Y)
COVARIANCE = np.linalg.inv(X.T @ X + np.eye(3) / 100.0)
NATURAL = 600**-0.5


def squares(trace, truth=1.0, mean=0.0):
    """(θ − mean)²/truth per chain, averaged over draws and coordinates."""
    return ((np.asarray(trace.draws, float) - mean) ** 2 / truth).mean(axis=(1, 2))


def z_of(values, truth=1.0):
    return (values.mean() - truth) / (values.std(ddof=1) / np.sqrt(values.size))


# ---- exact gradients ------------------------------------------------------------------------------------------------------

CORNERS = {
    "the defaults on 1500 rows": (sg.SGMGTD(1e-3), 1 / 1500),
    "a = 2, mass 3": (sg.SGMGTD(0.05, a=2, mass=3.0), 1.0),
    "a = 5": (sg.SGMGTD(0.05, a=5), 1.0),
    "T = 100 in units of 10": (sg.SGMGTD(0.05, temperature=100.0, scale=10.0), 1.0),
    "ten times as much θ-noise": (sg.SGMGTD(0.05, sigma_theta=4.0, sigma_p=0.03, gamma=1e-3), 1.0),
}


@pytest.mark.parametrize("name", CORNERS)
def test_sgmgtd_is_right_in_every_corner_with_exact_gradients(name):
    sampler, variance = CORNERS[name]
    model = sg.models.Gaussian(np.zeros(4), variance)
    trace = sg.sample(model, sampler, 1500, warmup=2000, thin=10, chains=64, seed=1, **QUIET)
    found = squares(trace, variance * sampler.temperature)
    assert abs(z_of(found)) < 5.0, found.mean()
    assert abs(z_of(found, 0.9)) > 5.0  # what it was off by would be seen


def test_taking_theta_noise_away_where_there_is_no_gradient_noise_is_seen(monkeypatch):
    """The control: a variance of gradient noise that is imagined, and compensated for."""
    model, sampler = sg.models.Gaussian(np.zeros(4), 1 / 1500), sg.SGMGTD(1e-3)
    right = type(sampler).start
    monkeypatch.setattr(type(sampler), "start", lambda self, *a, **k: right(self, *a, **(k | {"variance": 2000.0})))
    trace = sg.sample(model, sampler, 1500, warmup=2000, thin=10, chains=64, seed=1, **QUIET)
    assert squares(trace, 1 / 1500).mean() < 0.95


# ---- gradient noise that is measured --------------------------------------------------------------------------------------

KINDS = ["replacement", "no-replacement", "blocks"]


def still(scale):
    """A sampler that wants the variance, and whose step is so small that θ stays where it is."""
    return sg.Sampler(1e-9, thermostat=sg.thermostats.NoseHoover(center="adaptive"), scale=scale)


def variance_of(kind, size):
    """The variance of the gradient of a batch at the mean, in natural units."""
    residual = Y - X @ (COVARIANCE @ X.T @ Y)
    each = (600.0 * X * residual[:, np.newaxis]).var(axis=0) / size * NATURAL**2
    return each * (1.0 - (size - 1) / 599.0) if kind == "no-replacement" else each


@pytest.mark.parametrize("size", [1, 2, 5, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_the_variance_of_a_batch_is_measured(kind, size):
    mean = COVARIANCE @ X.T @ Y
    options = {"batch_size": size, "minibatch": kind, "init": mean, "chains": 8, "seed": 4, "warmup": 6000} | QUIET
    found = sg.sample(LINEAR, still(NATURAL), 1, **options).final["variance"]
    ratio = (found / variance_of(kind, size)).mean(axis=1)
    assert abs(z_of(ratio)) < 5.0, ratio.mean()
    assert abs(ratio.mean() - 1.0) < 0.15
    # 857 samples with weights that grow: a relative error of √(2/857 · 4/3) = 5.6 % of each estimate at least.
    assert 0.02 < (found / variance_of(kind, size)).std() < 0.5


def test_the_variance_of_a_batch_in_axes_of_its_own_is_that_of_the_turned_gradient():
    S = NATURAL * np.array([[1.0, 0.7, 0.0], [0.0, 1.0, 0.0], [-0.4, 0.2, 1.0]])
    mean = COVARIANCE @ X.T @ Y
    options = {"batch_size": 20, "init": mean, "chains": 8, "seed": 4, "warmup": 6000} | QUIET
    found = sg.sample(LINEAR, still(S), 1, **options).final["variance"]
    each = ((600.0 * X * (Y - X @ mean)[:, np.newaxis]) @ S).var(axis=0) / 20
    assert abs(z_of((found / each).mean(axis=1))) < 5.0
    plain = variance_of("replacement", 20)
    assert abs(z_of((found / plain).mean(axis=1))) > 5.0  # without the axes it would be another


def test_a_clipped_gradient_fluctuates_less():
    options = {"batch_size": 20, "chains": 2, "seed": 4, "warmup": 2000, "init": np.zeros(3)} | QUIET
    sampler = still(NATURAL)
    free, cut = (
        sg.sample(LINEAR, sampler, 1, clip_gradient=c, **options).final["variance"].mean() for c in (None, 100.0)
    )
    assert cut < 0.7 * free


@pytest.mark.parametrize("size", [16, 100])
def test_sgmgtd_is_right_with_minibatches(size):
    mean = COVARIANCE @ X.T @ Y
    options = {"batch_size": size, "init": mean, "chains": 64, "seed": 5, "thin": 10} | QUIET
    trace = sg.sample(LINEAR, sg.SGMGTD(0.07, scale=NATURAL), 800, warmup=3000, **options)
    found = squares(trace, np.diag(COVARIANCE), mean)
    assert abs(z_of(found)) < 5.0 or abs(found.mean() - 1.0) < 0.01, found.mean()
    fixed = sg.sample(LINEAR, sg.SGMGTD(0.07, scale=NATURAL, center="fixed"), 800, warmup=3000, **options)
    assert z_of(squares(fixed, np.diag(COVARIANCE), mean)) > 5.0  # the control: nothing known of the noise


def test_the_share_of_the_variance_that_a_slow_variable_sees_of_reshuffled_batches():
    """An autoregressive variable driven by noise whose mean over epochs is taken out."""
    assert variance_share(FullData(), 600, 0.1) == 0.0
    assert variance_share(WithReplacement(20), 600, 0.1) == 1.0
    assert variance_share(WithoutReplacement(600), 600, 0.1) == 0.0
    rng, E = np.random.default_rng(0), 30
    for r in (0.003, 0.03, 0.3):
        n = rng.standard_normal((200, 100, E))
        n = (n - n.mean(axis=2, keepdims=True)).reshape(200, -1)
        x, total = np.zeros(200), np.zeros(200)
        for t in range(n.shape[1]):
            x = np.exp(-r) * x + n[:, t]
            total += x * x * (t >= n.shape[1] // 3)
        seen = total / (n.shape[1] - n.shape[1] // 3) * 2.0 * np.sinh(r) * np.exp(-r)  # of white noise: its variance
        theory = variance_share(EpochShuffle(20), 600, r) / (1.0 - 1.0 / 30)
        assert seen.mean() == pytest.approx(theory, rel=0.12), r


# ---- schedules ------------------------------------------------------------------------------------------------------------

SCHEDULES = {"cyclical": Cyclical(0.1, 500), "decaying": PolynomialDecay(0.1, offset=2000.0)}


@pytest.mark.parametrize("preset", [sg.SGNHT, sg.SGMGT, sg.SGMGTD])
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_schedules_leave_the_law_as_it_is(preset, name, noise):
    model, sampler = sg.models.Gaussian(np.zeros(8), 1.0), preset(SCHEDULES[name])
    trace = sg.sample(model, sampler, 2000, warmup=2000, thin=10, chains=64, seed=6, gradient_noise=noise, **QUIET)
    found = squares(trace)
    assert abs(z_of(found)) < 5.0 or abs(found.mean() - 1.0) < 0.01, found.mean()


def test_a_friction_that_does_not_follow_the_step_size_is_seen(monkeypatch):
    chosen = gradient_noise.follow_step_size
    monkeypatch.setitem(chosen.implementations, (gradient_noise.KnownNoise,), lambda *a: None)
    chosen._chosen.clear()
    sampler = sg.SGNHT(Cyclical(0.1, 500))
    state = sampler.start(np.zeros(2))
    state.variance[:] = 40.0
    gradient_noise.follow_step_size(gradient_noise.KnownNoise(), state, 1.0, 0.1, 0.05)
    chosen._chosen.clear()  # what was found with the patch in place is not kept for other tests
    assert (state.xi == 1.0).all()  # the control of the test of the law, where one kernel more would be compiled


# ---- what is said of it ---------------------------------------------------------------------------------------------------

GAUSS = sg.models.Gaussian(np.zeros(4), 1.0)
SAID = {
    "thermostat": (GAUSS, sg.SGNHT(0.1, gamma=10.0), {}, "h²γT = 0.1", ("gamma=4",)),
    "heating": (GAUSS, sg.SGHMC(0.1), {"gradient_noise": 5.0}, "heats it by 50", ("SGNHT", "step_size=0.0032")),
    "fixed centre": (GAUSS, sg.SGMGT(0.1, center="fixed"), {"gradient_noise": 5.0}, "heats", ('center="adaptive"',)),
    "crosstalk": (LINEAR, sg.SGMGTD(1e-3), {"batch_size": 16}, "sigma_theta", ('scale="auto"', "step_size=0.1")),
    "kicks": (LINEAR, sg.SGNHT(0.1, scale=NATURAL), {"batch_size": 8}, "noise of one step", ("batch_size=",)),
    "reshuffled": (
        LINEAR,
        sg.SGNHT(0.1, scale=NATURAL),
        {"batch_size": 50, "minibatch": "shuffle"},
        "reshuffled",
        ('minibatch="replacement"',),
    ),
    "too much taken off": (GAUSS, sg.SGHMC(0.1, 1.0, 0.5), {}, "takes off more", ("lower it",)),
}


@pytest.mark.parametrize("name", SAID)
def test_sample_says_what_follows_from_its_settings_and_what_to_do(name):
    model, sampler, options, cause, cures = SAID[name]
    with pytest.warns(sg.RunWarning) as caught:
        sg.sample(model, sampler, 5, warmup=5, seed=1, progress=False, **options)
    said = " | ".join(str(w.message) for w in caught)
    assert cause in said
    for cure in cures:
        assert cure in said


def test_of_good_settings_nothing_is_foreseen():
    for model, sampler, options in (
        (GAUSS, sg.SGMGTD(0.1), {}),
        (GAUSS, sg.SGNHT(0.1), {"gradient_noise": 5.0}),
        (GAUSS, sg.SGHMC(0.1, 1.0, 0.5), {"gradient_noise": 5.0}),  # B̂ = hV/2
        (LINEAR, sg.SGMGTD(0.05, scale=NATURAL), {"batch_size": 100}),
        (LINEAR, sg.SGLD(1e-3, scale=NATURAL), {"batch_size": 100}),
    ):
        trace = sg.sample(model, sampler, 5, warmup=5, seed=1, **QUIET, **options)
        assert foreseen(trace) == [], sampler


def test_a_remedy_that_is_followed_to_the_letter_is_one():
    trace = sg.sample(LINEAR, sg.SGNHT(0.1, scale=NATURAL), 5, warmup=5, batch_size=8, seed=1, **QUIET)
    (found,) = foreseen(trace)
    step = float(found.advice.split("step_size=")[1].split()[0])
    batch = int(found.advice.split("batch_size=")[1].split()[0])
    for sampler, size in ((sg.SGNHT(step, scale=NATURAL), 8), (sg.SGNHT(0.1, scale=NATURAL), batch)):
        assert foreseen(sg.sample(LINEAR, sampler, 5, warmup=5, batch_size=size, seed=1, **QUIET)) == []


# ---- natural units by themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [1e-3, 1.0, 1e3])
def test_with_a_scale_that_is_measured_the_step_size_does_not_depend_on_the_posterior(s):
    model = sg.models.Gaussian(np.array([3.0, -1.0, 0.0]) * s, np.array([1.0, 9.0, 0.04]) * s**2)
    trace = sg.sample(model, sg.SGMGTD(0.1, scale="auto"), 1000, warmup=1000, thin=10, chains=8, seed=7, progress=False)
    scale = np.asarray(trace.info["scale"]) / s
    assert scale == pytest.approx([1.0, 3.0, 0.2], rel=0.3)
    sd = trace.draws.std(axis=(0, 1)) / s
    assert sd == pytest.approx([1.0, 3.0, 0.2], rel=0.06)


def test_a_run_that_goes_on_has_the_scale_that_was_measured():
    options = {"chains": 2, "seed": 7} | QUIET
    sampler = sg.SGMGTD(0.1, scale="auto")
    whole = sg.sample(GAUSS, sampler, 60, warmup=20, **options)
    first = sg.sample(GAUSS, sampler, 20, warmup=20, **options)
    rest = sg.sample(GAUSS, sampler, 40, warmup=0, init=first, **options)
    np.testing.assert_array_equal(np.concatenate((first.draws, rest.draws), axis=1), whole.draws)
    other = sg.sample(GAUSS, sg.SGMGTD(0.1), 20, warmup=20, **options)
    with pytest.raises(ValueError, match="did not measure its scale"):
        sg.sample(GAUSS, sampler, 5, warmup=0, init=other, **options)


def test_a_measured_scale_survives_a_checkpoint(tmp_path):
    options = {"chains": 2, "seed": 7, "warmup": 10} | QUIET
    sampler, file = sg.SGMGTD(0.1, scale="auto"), tmp_path / "run.npz"

    def stop(done, seen=[]):  # noqa: B006  a count that lasts
        seen.append(done)
        if sum(seen) >= 20:
            raise KeyboardInterrupt

    whole = sg.sample(GAUSS, sampler, 30_000, **options)
    sg.sample(GAUSS, sampler, 30_000, checkpoint=file, **(options | {"progress": stop}))
    resumed = sg.sample(GAUSS, sampler, 30_000, checkpoint=file, resume=True, **options)
    np.testing.assert_array_equal(resumed.draws, whole.draws)


def test_a_scale_to_be_measured_is_refused_where_there_is_nothing_to_measure():
    with pytest.raises(ValueError, match="scale='auto' is measured by sample"):
        sg.SGNHT(0.1, scale="auto").init(np.zeros(2))
    with pytest.raises(ValueError, match="scale='automatic' is unknown"):
        sg.SGNHT(0.1, scale="automatic")
    assert repr(sg.SGNHT(0.1, scale="auto")).count("scale='auto'") == 1


# ---- the covering design of docs/every_scale.py ---------------------------------------------------------------------------


def script():
    path = Path(__file__).parents[2] / "docs" / "every_scale.py"
    spec = importlib.util.spec_from_file_location("every_scale", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_in_the_design_every_pair_of_levels_occurs():
    every_scale = script()
    cells = every_scale.design(500)
    assert len(cells) >= 500
    seen = {pair for cell in cells for pair in every_scale._pairs(cell)}
    assert set(every_scale._pairs_that_can_be()) <= seen
    fewer = {pair for cell in cells[:20] for pair in every_scale._pairs(cell)}
    assert not set(every_scale._pairs_that_can_be()) <= fewer  # the control


def test_no_cell_of_a_part_of_the_design_fails_silently():
    every_scale = script()
    some = [c for c in every_scale.design(200) if c.dtype == "float64" and c.noise != "minibatch"][:40]
    found = [every_scale.run(cell, number, chains=64, draws=200) for number, cell in enumerate(some)]
    assert [row for row in found if row["verdict"] == "SILENT"] == []
    assert sum(row["verdict"] == "right" for row in found) > 20
    row = next(row for row in found if row["verdict"] == "warned")
    assert abs(row["variance"] - 1.0) > 0.01 + 4.0 * row["error"] or np.isnan(
        row["variance"]
    )  # the control: some are not right
