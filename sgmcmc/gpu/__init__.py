"""GPUs below the samplers: memory, launches, and the fused update of a parameter vector that lives on a device."""
