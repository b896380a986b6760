"""What a thermostat can do: open functions on its type.

A thermostat of your own is a NamedTuple with `friction`, `drive`, `relax`, `resample` and `n_variables`. The rest has a fallback.
Unless it says otherwise by `couples_coordinates`, its variables may depend on all coordinates, and a chain is one block.
"""

from __future__ import annotations

from sgmcmc.compiler.open_functions import LOOP, implements, open_function

__all__ = [
    "couples_coordinates",
    "drive",
    "drive_shared",
    "friction",
    "has_variables",
    "n_variables",
    "relax",
    "resample",
    "sharers",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function
def n_variables(thermostat, dim):
    """How many thermostat variables ξ a chain of `dim` coordinates has. Called in plain Python."""


@open_function
def couples_coordinates(part):
    """Whether what a part does to one coordinate depends on others. Called in plain Python.

    Where no part does, long chains are cut into blocks of coordinates, and small chains are advanced side by side.
    """


@open_function
def friction(thermostat, sigma_p, xi, i):
    """The friction that acts on coordinate i."""


@open_function
def drive(thermostat, xi, i, tau, excess):
    """Move ξ over a time tau as coordinate i drives it, with excess = K'² − T K''. Returns the part that `drive_shared` adds up.

    One ξ per coordinate moves here, and the returned part is 0; one ξ for all moves in `drive_shared`.
    """


@open_function
def drive_shared(thermostat, xi, tau, total, dim):
    """Move the ξ that all coordinates share over a time tau; `total` is the sum of what `drive` returned."""


@open_function(fastmath=LOOP, apart=True)
def relax(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau, layout):
    """The exact Ornstein–Uhlenbeck step of ξ over a time tau: rate σ_ξ/v, variance vT, v = γ/sharers."""


@open_function(inline=False, fastmath=LOOP, apart=True)
def resample(thermostat, xi, center, variance, normals, dim, temperature):
    """An exact draw of ξ from its invariant law N(μ, vT)."""


@open_function
def sharers(thermostat, dim):
    """How many coordinates share one ξ: its law is N(μ, γT/sharers)."""


def has_variables(thermostat) -> bool:
    """Whether there is a ξ at all."""
    return bool(n_variables(thermostat, 1) > 0)


@implements(couples_coordinates)
def _(part):
    return True


@implements(drive_shared)
def _(thermostat, xi, tau, total, dim):
    return None


@implements(sharers)
def _(thermostat, dim):
    return 1.0
