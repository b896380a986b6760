"""Five wells and noisy gradients: how many a chain of each sampler finds, and how near its draws come to the truth."""

from __future__ import annotations

import numpy as np

import sgmcmc as sg
from sgmcmc.evidence.experiments import wells

model = sg.models.FiveWell()
samplers = {
    "SGHMC": sg.SGHMC(0.05, friction=1.0),
    "SGNHT": sg.SGNHT(0.05),
    "SGMGT-D, a = 2": sg.SGMGTD(0.05, a=2),
}
print("true masses     ", wells.true_masses().round(3))
for name, sampler in samplers.items():
    trace = sg.sample(
        model,
        sampler,
        draws=20_000,
        thin=10,
        warmup=0,
        chains=4,
        seed=1,
        init=np.full((4, 1), model.WELLS[2]),
        gradient_noise=1.0,
        progress=False,
    )
    shares = wells.occupancies(trace.draws[:, :, 0])
    print(f"{name:<16}", shares.mean(axis=0).round(3), "off by", wells.wells_variation(shares).mean().round(3))
