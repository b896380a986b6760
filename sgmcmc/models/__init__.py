"""Models: targets with known answers, regressions, topics, a Boltzmann machine, recurrent networks."""

from sgmcmc.models.drbm import DRBM
from sgmcmc.models.five_well import FiveWell
from sgmcmc.models.gaussian import Gaussian
from sgmcmc.models.lda import LDA
from sgmcmc.models.linear import LinearRegression
from sgmcmc.models.logistic import LogisticRegression
from sgmcmc.models.lstm import LSTM
from sgmcmc.models.mixture import GaussianMixture
from sgmcmc.models.softmax import SoftmaxRegression

__all__ = [
    "DRBM",
    "LDA",
    "LSTM",
    "FiveWell",
    "Gaussian",
    "GaussianMixture",
    "LinearRegression",
    "LogisticRegression",
    "SoftmaxRegression",
]
