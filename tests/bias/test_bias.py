"""A run says how wrong it is: what `sample` warns of by itself, and what the bias report finds."""

from __future__ import annotations

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student_law

import sgmcmc as sg
from sgmcmc.bias.finding import student
from sgmcmc.bias.foreseen import _fast_thermostat
from sgmcmc.bias.health import split_r_hat
from sgmcmc.bias.stability import largest_curvature, longest_step
from sgmcmc.bias.temperatures import virials

QUIET = {"progress": False, "threads": 1}
EULER = sg.integrators.Euler()
GAUSSIAN = sg.models.Gaussian(np.zeros(3), np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]]))


def logistic(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(-(0.5 + X @ [1.0, -2.0])))
    return sg.models.LogisticRegression(X, y, intercept=True, names=["age", "dose"])


def said(model, sampler, **options) -> tuple[sg.Trace, list[str]]:
    """The trace and the first words of what `sample` warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = sg.sample(model, sampler, **({"draws": 1000, "warmup": 1000, "thin": 5, "seed": 1} | QUIET | options))
    own = [w for w in caught if issubclass(w.category, sg.RunWarning)]
    assert all(w.filename == __file__ for w in own)
    return trace, [str(w.message).partition(":")[0].removeprefix("this run is ") for w in own]


# ---- what sample says by itself ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        (sg.SGHMC(0.3), {}),
        (sg.SGNHT(0.2), {"gradient_noise": 1.0}),
        (sg.SGMGTD(0.12), {}),  # at 0.2 the narrow coordinate's variance is 1 % off, and it is said
        (sg.SGLD(0.1), {"thin": 20}),
        (sg.SGHMC(0.3, temperature=4.0), {}),
        (sg.SGHMC(0.3), {"chains": 1}),
        (sg.SGHMC(0.3), {"chains": 2}),
        (sg.SGHMC(0.3), {"keep": "moments"}),
    ],
    ids=repr,
)
def test_nothing_is_said_of_a_healthy_run(sampler, options):
    assert said(GAUSSIAN, sampler, **options)[1] == []


def test_no_false_alarm_in_two_hundred_healthy_runs():
    heard = [said(GAUSSIAN, sg.SGHMC(0.3), seed=seed, draws=300, warmup=200, thin=10)[1] for seed in range(200)]
    assert [words for words in heard if words] == []


def test_a_run_with_noisy_gradients_and_no_thermostat_is_called_hot():
    assert said(GAUSSIAN, sg.SGHMC(0.3), gradient_noise=2.0)[1] == ["hot"]
    assert said(logistic(), sg.SGLD(1e-3), batch_size=8, warmup=4000)[1] == ["hot"]


def test_a_run_that_is_far_too_hot_is_called_so_although_its_chains_scatter():
    trace, words = said(logistic(), sg.SGHMC(0.03), batch_size=8, warmup=4000)
    assert trace.configurational_temperature.mean() > 30
    assert "hot" in words
    assert "unstable" in words


def test_a_run_whose_injected_noise_is_too_small_is_called_cold():
    # B̂ is taken off, but there is no gradient noise: T is 1/2.
    assert said(GAUSSIAN, sg.SGHMC(0.3, noise_estimate=0.5))[1] == ["cold"]


def test_a_fast_thermostat_is_named_and_one_without_a_gamma_is_not_judged():
    assert "its thermostat is fast" in _fast_thermostat(sg.SGNHT(0.1, gamma=30.0), 0.1, 1).advice
    assert _fast_thermostat(SimpleNamespace(thermostat=("a part of your own",)), 0.1, 1) is None


def test_chains_that_have_not_met_are_called_not_mixed():
    model = sg.models.GaussianMixture(np.array([[-6.0], [6.0]]), 1.0, np.array([0.5, 0.5]))
    starts = np.array([[-6.0], [6.0], [-6.0], [6.0]])
    assert said(model, sg.SGHMC(0.3), init=starts)[1] == ["not mixed"]
    assert said(model, sg.SGHMC(0.3), init=starts, keep="moments")[1] == ["not mixed"]


def test_a_run_that_lost_chains_is_called_unstable():
    wild = sg.models.Gaussian(np.zeros(2), 1.0)
    init = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [1e200, 0.0]])
    words = said(_Quartic(wild), sg.SGHMC(0.1), init=init, on_divergence="drop")[1]
    assert words == ["unstable"]


def _Quartic(model):
    return sg.Potential(lambda theta: theta**3, dim=2)


def test_very_short_runs_are_left_alone_and_warnings_can_be_filtered_or_left_out():
    hot, euler = {"gradient_noise": 50.0}, sg.SGHMC(0.2, integrator=sg.integrators.Euler())  # whose steps make it hot
    assert said(GAUSSIAN, euler, draws=100)[1] == []
    assert said(GAUSSIAN, euler)[1] == ["hot"]  # the control
    assert said(GAUSSIAN, sg.SGHMC(0.3), draws=100, **hot)[1] == ["hot"]  # this needs no draws to be foreseen
    assert said(GAUSSIAN, sg.SGHMC(0.3), warn=False, **hot)[1] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sg.RunWarning)
        sg.sample(GAUSSIAN, sg.SGHMC(0.3), 1000, seed=1, **QUIET, **hot)
    with pytest.raises(TypeError, match="warn=1 is neither True nor False"):
        sg.sample(GAUSSIAN, sg.SGHMC(0.3), warn=1)


@pytest.mark.parametrize(
    ("sampler", "thin"), [(sg.SGHMC(0.5, integrator=EULER), 5), (sg.SGLD(0.8, integrator=EULER), 1)]
)
def test_a_run_whose_energies_overflow_is_told_though_its_draws_are_finite(sampler, thin):
    with pytest.warns(sg.RunWarning) as caught:
        trace = sg.sample(GAUSSIAN, sampler, 1000, warmup=1000, thin=thin, seed=1, **QUIET)
    assert np.isfinite(trace.draws).all()
    words = [str(w.message) for w in caught if "not mixed" not in str(w.message)]
    assert len(words) == 1, words
    assert "overflows" in words[0]


@pytest.mark.parametrize("sd", [1e-3, 1.0, 1e3])
def test_where_the_defaults_meet_other_units_the_remedy_names_them(sd):
    model = sg.models.Gaussian(np.zeros(3), sd**2)
    with pytest.warns(sg.RunWarning) as caught:
        sg.sample(model, sg.SGNHT(0.1 * sd, gamma=30.0 / sd**2), 300, warmup=300, seed=1, **QUIET)
    named = ['scale="auto" with step_size=0.1' in str(w.message) for w in caught]
    assert all(named) if sd != 1.0 else not any(named)
    assert said(model, sg.SGNHT(0.1, scale="auto"))[1] == []  # followed to the letter


def test_chains_that_swing_about_one_mean_with_energies_of_their_own_are_not_mixed():
    """With next to no friction each chain keeps the energy that it began with; no mean and no temperature shows it."""
    model = sg.models.Gaussian(np.zeros(5), 1e-6)
    assert "not mixed" in said(model, sg.SGNHT(1e-4), draws=2000, warmup=2000, thin=10, chains=8, seed=3)[1]
    assert said(model, sg.SGNHT(0.1, scale="auto"), draws=2000, warmup=2000, thin=10, chains=8, seed=3)[1] == []


# ---- the statistics behind it --------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.95, 0.999])
def test_intervals_are_those_of_student_and_never_shorter(level):
    x = np.random.default_rng(0).normal(size=2000)
    for n in (2, 4, 6, 9, 40, 2000):
        wide = student(x[:n], level)[1]
        exact = student_law.ppf(0.5 + level / 2, n - 1) * x[:n].std(ddof=1) / np.sqrt(n)
        assert exact * 0.999 < wide < exact * 1.25


def test_the_quick_r_hat_is_the_textbook_one():
    from sgmcmc.diagnostics import r_hat

    x = np.random.default_rng(0).normal(size=(4, 500, 2))
    x[0, :, 1] += 1.0
    quick = split_r_hat(x)
    assert quick[0] < 1.01
    assert abs(quick[1] - r_hat(x[:, :, 1])) < 0.02
    assert split_r_hat(np.zeros((2, 10, 1)))[0] == 1.0


def test_the_virial_of_exact_draws_is_the_temperature_and_the_same_draws_as_centre_would_cool_it():
    rng, d, n = np.random.default_rng(0), 50, 40
    model = sg.models.Gaussian(np.full(d, 3.0), 1.0)
    tries, naive = [], []
    for _ in range(100):
        x = 3.0 + rng.normal(size=(2, n, d))
        tries.append(virials(x, model).mean())
        naive.append(((x - x.mean(axis=(0, 1))) * (x - 3.0)).mean())
    error = np.std(tries) / 10
    assert abs(np.mean(tries) - 1.0) < 4 * error
    assert np.mean(naive) < 1.0 - 4 * error


def test_the_largest_curvature_and_the_edge_of_stability_are_found():
    scale = np.array([1.0, 0.5, 2.0])
    exact = np.linalg.eigvalsh(scale[:, None] * GAUSSIAN.precision * scale)[-1]
    found = largest_curvature(lambda x: GAUSSIAN.gradient(x), np.zeros(3), scale)
    assert abs(found / exact - 1) < 0.01
    stiff = sg.models.Gaussian(0.0, 1.0)
    for sampler in (sg.SGHMC, sg.SGLD):
        edge = longest_step(sampler(0.1), 1.0)
        sg.sample(stiff, sampler(0.98 * edge), 2000, seed=1, warn=False, **QUIET)
        with pytest.raises(sg.DivergenceError):
            sg.sample(stiff, sampler(1.05 * edge), 20_000, seed=1, warn=False, **QUIET)


# ---- the report ----------------------------------------------------------------------------------------------------


def test_a_report_of_a_healthy_run_has_no_problem_and_shows_itself_in_three_ways():
    trace = said(GAUSSIAN, sg.SGHMC(0.3), draws=2000, thin=10)[0]
    report = trace.bias_report()
    assert report.problems == []
    assert "no problem found" in str(report)
    assert str(report).count("\n") == len(report.findings)
    assert list(report.frame.columns) == ["value", "low", "high", "verdict", "advice"]
    assert report.frame.loc["configurational temperature", "low"] < 1 < report["configurational"].high
    assert report._repr_html_().count("<tr>") == 1 + len(report.findings)
    assert all(f.advice.endswith((".", ". ")) for f in report.findings)
    with pytest.raises(KeyError, match="is not in this report; there are"):
        report["nonsense"]


def test_the_gradient_noise_of_minibatches_is_found_and_its_heating_foretold():
    model, h = logistic(), 2e-3
    trace = said(model, sg.SGLD(h), batch_size=32, warmup=5000, thin=20, draws=2000)[0]
    report = trace.bias_report()
    theta = trace.draws.mean(axis=(0, 1))
    rng = np.random.default_rng(1)
    batches = np.stack([model.gradient(theta, rng.integers(0, 400, 32)) for _ in range(5000)])
    assert abs(report["gradient noise"].value / (0.5 * h * batches.var(axis=0)).max() - 1) < 0.1
    # V is nearly proportional to the Hessian: all directions are heated alike, as the ratio says.
    foretold = 1 + 1 / report["injected"].value
    assert abs(report["configurational"].value / foretold - 1) < 0.15
    assert report["injected"].verdict == report["configurational"].verdict == "hot"
    exact = said(model, sg.SGHMC(0.01), warmup=5000, thin=20)[0].bias_report()
    assert exact["gradient noise"].value == 0.0


def test_rows_without_repetition_have_the_smaller_noise_of_theory():
    from sgmcmc.bias.gradients import noise_variance

    model, theta, rng = logistic(40), np.zeros(3), np.random.default_rng(0)
    drawn = np.stack([model.gradient(theta, rng.permutation(40)[:20]) for _ in range(5000)]).var(axis=0)
    without = noise_variance(model, theta, 20, "no-replacement")
    np.testing.assert_allclose(drawn, without, rtol=0.1)
    assert (noise_variance(model, theta, 20, "replacement") > 1.5 * drawn).all()


def test_step_halving_finds_the_bias_of_euler_and_none_where_there_is_none():
    model = sg.models.Gaussian(np.zeros(2), 1.0)
    options = {"draws": 20_000, "warmup": 500, "thin": 2, "chains": 4}
    euler = said(model, sg.SGHMC(0.2, 1.0, integrator=sg.integrators.Euler()), **options)[0]
    found = euler.bias_report({"square": lambda x: x[0] ** 2})["bias of square"]
    truth = np.mean(euler.draws[:, :, 0] ** 2) - 1.0  # 0.24, of which the part of order h is 0.2
    assert found.verdict == "biased"
    assert abs(found.value - truth) < (found.high - found.low) / 2 + 0.25 * truth
    exact = said(model, sg.SGHMC(0.2, 1.0), **options)[0].bias_report(halving=True)  # BAOAB: exact for Gaussians
    assert exact["bias of variance"].verdict == "good"
    assert exact["bias of variance"].high - exact["bias of variance"].low < 0.15


def test_a_step_at_the_edge_of_stability_and_chains_that_disagree_are_named():
    edge = said(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGHMC(1.8), warn=False)[0].bias_report()
    assert edge["stability"].verdict == "unstable"
    assert abs(edge["stability"].value - 2 / 1.8) < 0.02
    apart = said(GAUSSIAN, sg.SGHMC(1e-3), warn=False)[0].bias_report()
    assert {"not mixed"} <= {f.verdict for f in apart.problems}


def test_a_trace_that_was_loaded_or_pickled_says_what_it_can(tmp_path):
    trace = said(GAUSSIAN, sg.SGHMC(0.3))[0]
    trace.save(tmp_path / "run.npz")
    for other in (sg.Trace.load(tmp_path / "run.npz"), pickle.loads(pickle.dumps(trace))):
        assert other.rerun is None
        report = other.bias_report(halving=True)
        assert report["stability"].verdict == report["bias by"].verdict == report["gradient"].verdict == "unknown"
        assert report["configurational"].verdict == "good"
        assert other.bias_report(model=GAUSSIAN)["configurational"].verdict == "good"
    with pytest.raises(ValueError, match="model has 2 parameters; the trace has 3"):
        trace.bias_report(model=sg.models.Gaussian(np.zeros(2), 1.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"functions": 3}, "functions=3 is not a function of theta"),
        ({"functions": {}}, "is not a function of theta"),
        ({"functions": {"a": 1}}, "is not a function of theta"),
        ({"halving": "yes"}, "halving='yes' is neither True"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, words):
    trace = said(GAUSSIAN, sg.SGHMC(0.3), draws=20)[0]
    with pytest.raises(TypeError, match=words):
        trace.bias_report(**arguments)


def test_a_function_that_returns_no_number_is_refused():
    trace = said(GAUSSIAN, sg.SGHMC(0.3), draws=20)[0]
    with pytest.raises(ValueError, match="give one that returns a number"):
        trace.bias_report(lambda x: x)


@pytest.mark.parametrize("keep", ["moments", lambda theta: theta[:1]])
def test_traces_without_draws_of_theta_have_a_report(keep):
    report = said(GAUSSIAN, sg.SGHMC(0.3), keep=keep)[0].bias_report(halving=True)
    assert report["configurational"].verdict == "good"


# ---- three verdicts --------------------------------------------------------------------------------------------------


def of_chains(*temperatures):
    """A trace that knows its chains' temperatures and nothing else."""
    x = np.array(temperatures, float)
    return sg.Trace(np.zeros((x.size, 10, 1)), {}, x, x, {})


@pytest.mark.parametrize(
    ("temperatures", "verdict"),
    [
        ((0.99, 1.0, 1.01, 1.0), "good"),
        ((0.5, 0.8), "not resolved"),  # 0.65 (−1.3 to 2.6)
        ((2.4, 2.8), "not resolved"),
        ((0.74, 0.75, 0.83, 0.7), "cold"),  # 0.755 (0.67 to 0.84) is all below 0.95
        ((0.9, 0.92, 0.95, 0.99), "not resolved"),  # 0.94 (0.88 to 1.0)
        ((1.5, 1.51, 1.52, 1.5), "hot"),
        ((-19.0, -19.4, -19.8, -19.2), "cold"),
        ((1.0,), "unknown"),
    ],
)
def test_nothing_is_good_unless_its_whole_interval_is_and_nothing_bad_unless_all_of_it_is_outside(
    temperatures, verdict
):
    found = of_chains(*temperatures).bias_report()["configurational"]
    assert found.verdict == verdict
    assert found.is_problem == (verdict in ("hot", "cold"))
    if verdict == "good":
        assert found.low >= 0.95
        assert found.high <= 1.05
    if found.value < 0:
        assert "times what" not in found.advice
        assert "negative" in found.advice


def test_a_kinetic_temperature_is_judged_by_its_interval_too():
    kinetic = {
        name: of_chains(*t).bias_report()["kinetic"] for name, t in {"wide": (0.4, 1.6), "right": (1.0, 1.01)}.items()
    }
    assert kinetic["wide"].verdict == "not resolved"
    assert kinetic["right"].verdict == "good"
    assert "run" in kinetic["wide"].advice


def test_a_short_run_is_not_resolved_rather_than_good_and_the_report_says_so():
    report = said(GAUSSIAN, sg.SGHMC(0.3), draws=120, thin=1, chains=2)[0].bias_report(halving=True)
    assert report["configurational temperature"].verdict != "good"
    assert report["bias of mean"].verdict == "not resolved"
    assert "not resolved" in str(report).splitlines()[0] or report.problems != []
    for found in report.findings:
        assert found.verdict != "good" or np.isnan(found.low) or found.low <= found.value <= found.high


def test_a_bias_is_good_only_if_its_interval_is_within_the_tolerance():
    from sgmcmc.bias.halving import _bias

    x = np.random.default_rng(0).normal(size=(4, 20_000))
    assert _bias("x", x, x[:, ::-1] + 0.0, 2).verdict == "good"
    assert _bias("x", x[:, :200], x[:, 200:400], 2).verdict == "not resolved"
    assert _bias("x", x + 0.2, x[::-1], 2).verdict == "biased"
