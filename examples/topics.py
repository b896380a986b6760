"""Topics of documents by latent Dirichlet allocation, from gradients of a few documents; θ is the logarithm of the topics."""

from __future__ import annotations

import numpy as np

import sgmcmc as sg

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(60, 0.1), size=3)  # three topics over sixty words
shares = rng.dirichlet(np.full(3, 0.3), size=200)
counts = np.array([rng.multinomial(50, share @ topics) for share in shares])
rows, words = np.nonzero(counts)
indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=200))))
model = sg.models.LDA(indptr, words, counts[rows, words], words=60, topics=3)

theta = np.log(rng.gamma(1.0, 1.0, model.dim) + 0.01)
sampler = sg.SGMGTD(0.02, a=1, scale=0.3)
trace = sg.sample(model, sampler, draws=200, thin=5, warmup=2000, chains=1, batch_size=20, init=theta[None], seed=1)
found = np.mean([model.topic_words(draw) for draw in trace.draws[0]], axis=0)
for k, topic in enumerate(found):
    nearest = int(np.argmax(topics @ topic))
    print(f"topic {k}: words {np.argsort(-topic)[:5]}, of the true one {np.argsort(-topics[nearest])[:5]}")
