"""What would be shown is read for instructions, by the gate's own detectors (seed 002, pattern 6)."""
