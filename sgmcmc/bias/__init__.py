"""Bias: how wrong a run is, measured on the run itself, with a remedy for each problem."""
