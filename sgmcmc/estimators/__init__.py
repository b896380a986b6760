"""Gradient estimators: less noise from the same rows, for every sampler; the law that is drawn from stays the same."""

from sgmcmc.estimators.control import ControlVariate, control_variate, find_mode
from sgmcmc.estimators.importance import ImportanceRows, importance_rows
from sgmcmc.estimators.svrg import sample_svrg

__all__ = ["ControlVariate", "ImportanceRows", "control_variate", "find_mode", "importance_rows", "sample_svrg"]
