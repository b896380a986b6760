"""Models: targets with known answers, and regressions."""

from sgmcmc.models.five_well import FiveWell
from sgmcmc.models.gaussian import Gaussian
from sgmcmc.models.linear import LinearRegression
from sgmcmc.models.logistic import LogisticRegression
from sgmcmc.models.mixture import GaussianMixture
from sgmcmc.models.softmax import SoftmaxRegression

__all__ = [
    "FiveWell",
    "Gaussian",
    "GaussianMixture",
    "LinearRegression",
    "LogisticRegression",
    "SoftmaxRegression",
]
