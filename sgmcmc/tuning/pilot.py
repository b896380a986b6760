"""The pilot of a tuning: `sgmcmc.run.pilot` with runs by `sample`."""

from __future__ import annotations

from typing import Any

from sgmcmc.run import pilot
from sgmcmc.run.pilot import Pilot
from sgmcmc.run.sample import sample

__all__ = ["Pilot", "find_scale"]


def find_scale(
    model: Any,
    *,
    chains: int = 4,
    init: Any = None,
    scale: Any = None,
    temperature: float = 1.0,
    seed: int = 0,
    matrix: bool = True,
    progress: bool = False,
) -> Pilot:
    """Go downhill from `init`, then run short chains and measure E[(∂U)²] along them, in four rounds.

    Takes some thousand gradients, of at most 5000 rows each.

    Parameters
    ----------
    model : as for sample
    chains : int
    init : array, optional
    scale : float or array, optional
        Units that are known already; only places and steepness are looked for then.
    temperature : float
    seed : int
    matrix : bool
        Whether the scale may be one, where coordinates depend on each other (up to 256 of them): six more rounds.
    progress : bool

    Returns
    -------
    Pilot

    Examples
    --------
    >>> scale = sg.tuning.find_scale(sg.models.Gaussian(np.zeros(2), [1.0, 1e4]), seed=1).scale
    >>> bool(50 < scale[1] / scale[0] < 200)
    True
    """
    return pilot.find_scale(
        sample,
        model,
        chains=chains,
        init=init,
        scale=scale,
        temperature=temperature,
        seed=seed,
        matrix=matrix,
        progress=progress,
    )
