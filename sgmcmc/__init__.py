"""Stochastic-gradient MCMC you can trust."""
