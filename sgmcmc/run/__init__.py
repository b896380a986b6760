"""A run from the door to the trace: what was asked for, where chains start, what is kept, checkpoints, other machines."""
