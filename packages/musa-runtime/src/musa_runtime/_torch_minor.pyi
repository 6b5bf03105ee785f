# The build writes the module.
TORCH_MINOR: str
