"""Whether an answer came from what was recalled or from what the model knew before (RePCS, seed 004)."""
