"""Engines: what runs a chain: compiled on the CPU, or a Python loop around a plain Python gradient."""
