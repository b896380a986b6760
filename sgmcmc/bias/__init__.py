"""Bias: how wrong a run is, measured on the run itself, with a sentence on what to do about each part of it."""
