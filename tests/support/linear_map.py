"""The linear map of a step and its stationary covariance; now part of the package."""

from sgmcmc.testing.lyapunov import LinearStep

__all__ = ["LinearStep"]
