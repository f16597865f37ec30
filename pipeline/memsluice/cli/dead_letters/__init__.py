"""``memsluice dead-letters``: what nobody could authenticate."""
