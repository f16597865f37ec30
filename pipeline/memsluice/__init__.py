"""memsluice."""
