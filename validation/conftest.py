"""Two profiles: quick, which everybody runs, and full (SGMCMC_VALIDATE=full), which takes up to an hour."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items):
    if os.environ.get("SGMCMC_VALIDATE") == "full":
        return
    skip = pytest.mark.skip(reason="long: set SGMCMC_VALIDATE=full, or run `sgmcmc validate --full`")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
