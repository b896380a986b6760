"""A run from its arguments to the trace: plan, starts, scheduler, chain loops, outputs, checkpoints, executors."""
