"""Tuning: settings that fit, the same on every run, and never one that only looks good."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.tuning import OfEdge, discrepancy, find_scale, mixing
from sgmcmc.tuning.cost import cost_of_step
from sgmcmc.tuning.space import Space, default_space
from sgmcmc.tuning.tune import RACE, STAGES, UNITS

MODEL = sg.models.Gaussian(np.zeros(3), np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]]))
QUIET = {"progress": False, "budget": 60_000}


def logistic(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(-(0.5 + X @ [1.0, -2.0])))
    return sg.models.LogisticRegression(X, y, intercept=True)


def noisy(step_size, friction=1.0, scale=1.0):
    """SGHMC, which nothing protects from gradient noise."""
    return sg.SGHMC(step_size, friction, scale=scale)


# ---- the whole -----------------------------------------------------------------------------------------------------


def test_the_tuned_sampler_is_ready_to_use_and_right():
    best = sg.tune(sg.SGHMC, MODEL, **QUIET)
    assert isinstance(best.sampler, sg.Sampler)
    assert best.table["gradients"].sum() + best.checks["gradients"].sum() <= QUIET["budget"]
    assert len(best.table) == sum(s.keep + s.join for s in STAGES)
    trace = best.sample(4000, thin=5, seed=3, progress=False)
    ratio = trace.draws.var(axis=(0, 1)) / np.diag(MODEL.cov)
    assert abs(ratio - 1).max() < 0.1
    assert best.setting["step_size"] == best.sampler.step_size
    assert repr(best).startswith("<Tuned: ")


def test_the_same_seed_gives_the_same_table_on_threads_and_on_an_executor():
    one = sg.tune(sg.SGHMC, MODEL, seed=4, threads=1, **QUIET)
    with ThreadPoolExecutor(2) as pool:
        two = sg.tune(sg.SGHMC, MODEL, seed=4, executor=pool, **QUIET)
    other = sg.tune(sg.SGHMC, MODEL, seed=5, threads=2, **QUIET)
    assert one.table.equals(two.table)
    assert one.sampler == two.sampler
    assert not one.table.equals(other.table)


def test_a_hot_setting_is_not_chosen_and_a_criterion_of_mixing_alone_would_choose_it():
    space = {"step_size": [0.02, 0.8], "friction": 1.0, "scale": 1.0}
    hot = {"gradient_noise": 0.9, "space": space, "progress": False, "budget": 200_000}
    seen = sg.tune(noisy, MODEL, **hot)
    with pytest.warns(sg.RunWarning, match="no setting that passes its check on fresh seeds, in 1 run; .* hot"):
        blind = sg.tune(noisy, MODEL, criterion=mixing, **hot)
    assert seen.setting["step_size"] == 0.02  # heats by h V/2A = 1.8 %, of which `sample` says nothing
    assert seen.passed
    assert blind.setting["step_size"] == 0.8  # by 72 %, and by its step
    assert blind.checks["lowest variance"].min() > 1.5


def test_space_and_criterion_can_be_replaced():
    asked = []

    def own(trace):
        asked.append(trace.info["sampler"])
        return abs(float(trace.info["sampler"].split("step_size=")[1].split(",")[0]) - 0.123)

    best = sg.tune(sg.SGHMC, MODEL, space={"step_size": (0.05, 0.5), "friction": 2.0}, criterion=own, **QUIET)
    assert abs(best.setting["step_size"] - 0.123) < 0.02
    assert best.setting["friction"] == best.sampler.sigma_p == 2.0
    assert len(asked) == len(best.table)


def test_batch_sizes_are_chosen_too_and_cost_what_they_cost():
    best = sg.tune(sg.SGNHT, logistic(), space={"batch_size": [16, 128]}, **QUIET)
    first = best.table[best.table["stage"] == 0].groupby("batch_size")["gradients"].first()
    wanted = cost_of_step(None, logistic(), 128) / cost_of_step(None, logistic(), 16)
    assert wanted > 1.2
    assert abs(first[16] / first[128] - wanted) < 0.05 * wanted
    assert best.batch_size in (16, 128)
    assert best.sample(50, warmup=10, progress=False).info["batch_size"] == best.batch_size


def test_ctrl_c_returns_what_there_is_and_nothing_is_nothing():
    calls = []

    def criterion(trace):
        calls.append(trace)
        if len(calls) == 30:  # in the second stage
            raise KeyboardInterrupt
        return mixing(trace)

    best = sg.tune(sg.SGHMC, MODEL, criterion=criterion, **QUIET)
    assert best.interrupted
    assert isinstance(best.sampler, sg.Sampler)
    assert set(best.table["stage"]) == {0, 1}
    with pytest.raises(KeyboardInterrupt):
        sg.tune(sg.SGHMC, MODEL, criterion=_interrupt, **QUIET)


def _interrupt(trace):
    raise KeyboardInterrupt


def test_settings_that_diverge_lose_and_if_all_do_it_is_said():
    best = sg.tune(sg.SGHMC, MODEL, space={"step_size": [0.2, 50.0], "scale": 1.0}, **QUIET)
    assert best.setting["step_size"] == 0.2
    assert best.table["status"].str.startswith("diverged").any()
    with pytest.raises(ValueError, match="every setting diverged"):
        sg.tune(sg.SGHMC, MODEL, space={"step_size": (40.0, 50.0), "scale": 1.0}, **QUIET)


def test_nothing_is_said_of_the_runs_that_lose():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best = sg.tune(sg.SGNHT, MODEL, gradient_noise=2.0, **QUIET)
    assert best.passed
    worst = best.table.sort_values("score").iloc[-1]
    lost = sg.SGNHT(worst["step_size"], worst["diffusion"], scale=best.setting["scale"])
    with pytest.warns(sg.RunWarning):  # the control: of such a run alone much is said
        sg.sample(MODEL, lost, 300, gradient_noise=2.0, seed=0, progress=False)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"sampler": sg.SGHMC(0.1)}, TypeError, "makes no samplers; give SGMGTD itself"),
        ({"budget": 10}, ValueError, "budget=10 is out of range"),
        ({"space": 3}, TypeError, "space=3 is not a dictionary"),
        ({"space": {"step_size": (1.0, 0.5)}}, ValueError, "is no range; give"),
        ({"space": {"step_size": (0.1, 0.2, 0.3)}}, ValueError, "is no range; give"),
        ({"space": {"step_size": []}}, ValueError, "has no choices"),
        ({"space": {"step_size": (-1.0, 0.5)}}, ValueError, "out of range"),
        ({"space": {"step_size": 0.1, "friction": 1.0}}, ValueError, "nothing to tune"),
        ({"criterion": 3}, TypeError, "criterion=3 cannot be called"),
        ({"temperature": 0.0}, ValueError, "temperature=0.0 is out of range"),
        ({"chains": 0}, ValueError, "chains=0 is out of range"),
        ({"sampler": lambda step_size: 3}, TypeError, "which is not a Sampler"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, error, words):
    given = {"sampler": sg.SGHMC, "model": MODEL, "budget": 60_000, "progress": False} | arguments
    with pytest.raises(error, match=words):
        sg.tune(**given)


# ---- the parts -----------------------------------------------------------------------------------------------------


def test_the_default_space_holds_what_the_issue_of_tuning_is_about():
    space = default_space(sg.SGMGTD, logistic())
    wanted = {"step_size", "a", "softening", "sigma_p", "sigma_theta", "sigma_xi", "resample_momentum", "batch_size"}
    assert wanted <= set(space)
    assert "batch_size" not in default_space(sg.SGMGTD, MODEL)
    assert all(b is None or 2 * b <= 300 for b in space["batch_size"])


def test_points_fill_the_space_and_neighbours_stay_in_it():
    space = Space(sg.SGHMC, {"step_size": OfEdge(0.1, 0.5), "friction": (1, 100)}, 4.0, {})
    settings = [space.setting(p) for p in space.points(32, 0)]
    steps = np.array([s["step_size"] for s in settings])
    assert 0.1 <= steps.min() < 0.12
    assert 0.4 < steps.max() <= 0.5  # the edge is 2/√4
    assert all(isinstance(s["friction"], int) for s in settings)
    near = space.near(np.array([0.01, 0.99]), 200, 0.1, 0)
    assert near.min() >= 0.0
    assert near.max() <= 1.0
    assert abs(near - [0.01, 0.99]).mean() < 0.15


def test_the_pilot_finds_places_and_spreads_of_a_badly_scaled_posterior():
    sd = np.array([1e-3, 1.0, 50.0])
    pilot = find_scale(sg.models.Gaussian(np.array([2.0, -1.0, 30.0]), sd**2), chains=4)
    assert abs(np.log(pilot.scale / sd)).max() < 0.4
    assert (abs(pilot.theta - [2.0, -1.0, 30.0]) < 6 * sd).all()
    assert 0.5 < pilot.steepest < 3
    plain = find_scale(sg.models.Gaussian(np.zeros(3), sd**2), scale=1.0)
    assert plain.steepest > 0.9e6  # the negative control: without a scale it is stiff


def test_the_pilot_turns_the_axes_where_coordinates_depend_on_each_other_and_only_there():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    cov = Q @ np.diag(np.geomspace(1e-4, 1.0, 6)) @ Q.T
    model = sg.models.Gaussian(np.ones(6), cov)
    pilot = find_scale(model)
    assert pilot.scale.shape == (6, 6)
    curvatures = np.linalg.eigvalsh(pilot.scale.T @ np.linalg.inv(cov) @ pilot.scale)
    assert 0.4 < curvatures[0] < curvatures[-1] < 2.5
    plain = find_scale(model, matrix=False)
    assert plain.scale.shape == (6,)
    bent = np.linalg.eigvalsh(plain.scale[:, None] * np.linalg.inv(cov) * plain.scale)
    assert bent[-1] / bent[0] > 500  # the negative control
    assert find_scale(sg.models.Gaussian(np.zeros(6), np.geomspace(1e-4, 1.0, 6))).scale.shape == (6,)
    two = sg.models.GaussianMixture(np.array([[-4.0, 0.0], [4.0, 0.0]]), 1.0)
    assert find_scale(two).scale.shape == (2,)


def test_axes_are_not_made_longer_than_a_lopsided_posterior_allows():
    """Categories in which only one outcome occurs: curvature grows away from the mode, and chains in axes from there run hot."""
    try:
        data = sg.datasets.load("caravan")
    except (ImportError, OSError) as missing:
        pytest.skip(f"no insurance data here: {missing}")
    train, _ = sg.datasets.fold(data, 0, 0)
    model = sg.models.LogisticRegression(train.X, train.y, prior=sg.priors.Gaussian(10.0), intercept=True)
    mode = sg.estimators.find_mode(model)
    H = np.array([model.gradient(mode + s) - model.gradient(mode - s) for s in 1e-4 * np.eye(mode.size)]) / 2e-4
    naive = np.linalg.inv(np.linalg.cholesky(0.5 * (H + H.T))).T
    pilot = find_scale(model)
    assert pilot.scale.shape == (86, 86)
    options = {"draws": 500, "warmup": 500, "seed": 1, "progress": False, "warn": False}
    hot, right = (
        sg.sample(model, sg.SGHMC(0.2, scale=S), init=pilot.theta, **options).configurational_temperature.mean()
        for S in (naive, pilot.scale)
    )
    assert right < 1.25
    assert hot > 1.6


def test_a_step_is_counted_by_what_it_costs():
    model = sg.models.LogisticRegression(np.ones((500, 10)), np.arange(500) % 2)
    costs = [cost_of_step(sg.SGMGTD(1e-3, a=a), model, 32) for a in (1, 2, 1.5)]
    assert 1.0 < costs[1] / costs[0] < 2.0
    assert 4.0 < costs[2] / costs[0] < 12.0
    assert cost_of_step(None, model, 500) > 2 * cost_of_step(None, model, 32)
    slow = sg.Potential(lambda theta: theta, dim=10)
    assert cost_of_step(sg.SGMGTD(1e-3, a=1.5), slow, 0) == cost_of_step(sg.SGHMC(1e-3), slow, 0)
    space = {"a": [1.5], "batch_size": [None], "step_size": (1e-3, 1e-2)}
    with pytest.warns(sg.RunWarning, match="no setting that passes its check"):  # steps of 0.01 are too short to mix
        few, many = (
            sg.tune(sg.SGMGTD, model, budget=45_000, space=space | {"a": [a]}, progress=False).table["gradients"].sum()
            for a in (1.5, 1.0)
        )
    assert many > 1.5 * few


def test_the_criterion_of_right_draws_is_their_scatter_and_of_wrong_ones_their_bias():
    rng, criterion = np.random.default_rng(0), discrepancy(np.sqrt(np.diag(MODEL.cov)))
    root = np.linalg.cholesky(MODEL.cov)

    def score(factor=1.0, shift=0.0):
        draws = factor * rng.standard_normal((4, 500, 3)) @ root.T + shift
        nothing = np.full(4, np.nan)
        return criterion(sg.Trace(draws, {"temperature": 1.0}, nothing, nothing, {}, model=MODEL))

    right = np.mean([score() for _ in range(5)])
    assert right < 0.003
    for wrong in (score(1.2), score(0.8), score(1.0, 0.3)):
        assert wrong > 3 * right


def test_the_budget_is_spent_and_not_more():
    assert RACE == 108
    assert UNITS == 162
    budget = 80_000
    best = sg.tune(sg.SGHMC, MODEL, budget=budget, progress=False)
    raced, checked = best.table["gradients"].sum(), best.checks["gradients"].sum()
    assert 0.9 * budget * RACE / UNITS < raced <= budget * RACE / UNITS
    assert raced + checked <= budget
    assert len(best.checks) < 3 or raced + checked > 0.9 * budget
