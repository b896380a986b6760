"""The validation suite behind ``sgmcmc validate``: its topics, the wrong samplers that it must reject, and its page."""
