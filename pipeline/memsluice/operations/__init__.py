"""What operators do: commands, the held queue, dead letters, provenance, policies, traces, monitoring."""
