"""Topics read from their start or from a position: on the broker, in the local log, or followed."""
