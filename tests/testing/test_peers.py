"""Other libraries through the adapter: the errors that are known are seen, and where they are right they pass.

What is asserted here is that the checks see; a new version of a library that repairs an error will, rightly, ask for a new
table. Without the extra `peers` only the first tests run.
"""

from __future__ import annotations

import textwrap

import pytest

from sgmcmc.evidence.validation import peers
from sgmcmc.testing.black_box import check_black_box
from sgmcmc.testing.targets import GAUSSIAN

pytestmark = pytest.mark.filterwarnings("default")  # theirs are not ours

HERE = peers.installed()
needs_blackjax = pytest.mark.skipif("blackjax" not in HERE, reason='blackjax is missing: pip install "sgmcmc[peers]"')
needs_posteriors = pytest.mark.skipif(
    "posteriors" not in HERE, reason='posteriors is missing: pip install "sgmcmc[peers]"'
)


def variance(box, **how):
    """The finding on the variance of a Gaussian in 20 dimensions."""
    how = {"warmup": 20, "steps": 100, "chains": 128} | how
    return check_black_box(box, GAUSSIAN, dim=20, **how).findings[0]


def test_without_the_libraries_the_table_names_the_extra(monkeypatch):
    monkeypatch.setattr(peers, "installed", dict)
    with pytest.raises(ImportError, match=r"sgmcmc\[peers\]"):
        peers.peers_table()
    assert list(peers.findings()) == []


def test_every_case_of_a_peer_has_ours_beside_it():
    ours = {(c.eps, c.settle, c.average) for c in peers.cases() if c.library == "sgmcmc"}
    assert {(c.eps, c.settle, c.average) for c in peers.cases() if c.library == "posteriors"} <= ours


def test_our_sampler_passes_where_theirs_are_looked_at():
    for case in peers.cases():
        if case.library == "sgmcmc" and case.sampler == "SGHMC" and case.eps > 0.01:
            chains = 512 if "α = 0.01" in case.setting else 128  # a slow one needs more until an error of 5 % is seen
            finding = variance(case.make(), warmup=50, steps=200, chains=chains)
            assert finding.passed, finding


def test_the_table_has_a_row_for_every_check():
    case = next(c for c in peers.cases() if c.library == "sgmcmc" and c.eps > 0.05)
    found = [f._replace(subject=f"sgmcmc 0, SGLD, {case.setting}") for f in check_black_box(case.make(), steps=40)]
    table = peers.peers_table(found=found)
    assert len(table) == len(found)
    assert list(table.columns[:5]) == ["library", "sampler", "case", "check", "target"]
    assert table[table.se.isna()].check.tolist() == ["chains are independent"] * 4  # a p-value instead, for each target


@needs_blackjax
def test_blackjax_sghmc_forgets_the_temperature_and_is_seen():
    finding = variance(peers.blackjax_sghmc(0.05, 0.01, inner=10, T=0.1))
    assert not finding.passed
    assert finding.figure > 8.0


@needs_blackjax
def test_blackjax_sghmc_is_too_wide_at_its_default_friction_and_is_seen():
    finding = variance(peers.blackjax_sghmc(0.1, 0.01, inner=50))
    assert not finding.passed
    assert 1.5 < finding.figure < 1.9


@needs_blackjax
def test_blackjax_passes_with_small_steps():
    assert variance(peers.blackjax_sghmc(0.005, 1.0, inner=200)).passed
    assert variance(peers.blackjax_sgld(0.01, T=0.5), warmup=200, steps=1000).passed
    assert variance(peers.blackjax_sgnht(0.01, 1.0, T=0.5), warmup=200, steps=1000).passed


@needs_posteriors
def test_posteriors_sghmc_with_a_low_friction_is_too_wide_and_is_seen():
    finding = variance(peers.posteriors_box("sghmc", 0.05, alpha=0.1), warmup=2000, steps=1000)
    assert not finding.passed
    assert 1.7 < finding.figure < 2.3


@needs_posteriors
def test_posteriors_baoa_and_small_steps_pass():
    assert variance(peers.posteriors_box("baoa", 0.1, T=0.1, alpha=1.0), steps=300).passed
    assert variance(peers.posteriors_box("sghmc", 0.005, alpha=1.0), warmup=200, steps=1000).passed
    assert variance(peers.posteriors_box("sgld", 0.01, T=0.5), warmup=200, steps=1000).passed
    assert variance(peers.posteriors_box("sgnht", 0.01, T=0.5, alpha=1.0), warmup=200, steps=1000).passed


@needs_blackjax
def test_the_example_in_the_docstring_runs(capsys):
    block = peers.__doc__.split("without this module:\n\n")[1]
    exec(textwrap.dedent(block), {})
    assert "variance ÷ truth" in capsys.readouterr().out
