"""Models: targets with known answers, regressions, topics, a Boltzmann machine, recurrent networks."""

from typing import TYPE_CHECKING

from sgmcmc._lazy import lazily

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazily(
    __name__,
    {
        "drbm": ("DRBM",),
        "five_well": ("FiveWell",),
        "gaussian": ("Gaussian",),
        "lda": ("LDA",),
        "linear": ("LinearRegression",),
        "logistic": ("LogisticRegression",),
        "lstm": ("LSTM",),
        "mixture": ("GaussianMixture",),
        "softmax": ("SoftmaxRegression",),
    },
)
