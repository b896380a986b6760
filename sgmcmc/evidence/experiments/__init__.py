"""The paper's experiments: each a module with `run(quick, out, seed)` that tunes, runs, and writes tables and pictures."""
