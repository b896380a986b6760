"""Checks that see wrong samplers: the validation suite, for your own sampler, kinetics, integrator or library."""

from __future__ import annotations

from sgmcmc.testing.report import Finding, Report

__all__ = ["Finding", "Report"]
