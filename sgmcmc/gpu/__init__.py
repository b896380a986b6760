"""GPUs below the samplers: availability, memory, launches, and the fused update of a parameter vector in device memory."""
