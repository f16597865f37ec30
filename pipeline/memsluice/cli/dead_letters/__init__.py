"""``memsluice dead-letters``: input that could not be authenticated."""
