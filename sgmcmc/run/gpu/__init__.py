"""The chain loop on GPUs: chains per device, their kernels, and one step as a thread or a block of threads runs it."""
