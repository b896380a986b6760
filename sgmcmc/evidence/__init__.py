"""What proves and measures the package: the validation suite, benchmarks, and the experiments of the paper."""
