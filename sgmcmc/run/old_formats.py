"""What older versions wrote: the centre μ of ξ in place of the variance V of the gradient noise, and other names of parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["is_same_fact", "with_variance"]

# Parts that have another name now.
NAMES = {"BAOAB": "Splitting_BAOAB", "SymmetricSplitting": "Splitting_BNFAFNB"}
DIGEST = re.compile(r"(\w+) [0-9a-f]{32}")


def with_variance(arrays: Mapping[str, Any], sigma_p: float, temperature: float, adaptive: bool) -> dict[str, Any]:
    """The arrays of a checkpoint or of the end of a trace, in the present format.

    An adaptive centre was μ = σ_p + hV/(2T), so V = 2T(μ − σ_p)/h; it was learnt, and could be below σ_p.
    """
    found = dict(arrays)
    if "variance" in found or "center" not in found:
        return found
    center, before = np.asarray(found.pop("center")), np.asarray(found["before"])
    if center.ndim != 2 or before.shape != center.shape[:1]:
        return dict(arrays)  # no state of ours; refused when it is read
    with np.errstate(all="ignore"):
        variance = 2.0 * temperature * np.maximum(center - sigma_p, 0.0) / before[:, np.newaxis]
    found["variance"] = np.where(np.isfinite(variance) & adaptive, variance, 0.0).astype(center.dtype)
    return found | {name: np.zeros((len(center), 0), center.dtype) for name in ("loss", "bend", "span")}


def is_same_fact(there: str | None, here: str | None) -> bool:
    """Whether a fact of a checkpoint is one of this run. Parts of this package once had a digest, and some other names."""
    found = None if there is None else DIGEST.fullmatch(there)
    return there == here or (found is not None and NAMES.get(found[1], found[1]) == here)
