"""A run from its arguments to the trace: what was asked for, where chains start, what is kept, checkpoints, other machines."""
