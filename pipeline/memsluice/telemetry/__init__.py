"""What a running gate tells: spans over OTLP, metrics for Prometheus, health. Never content, never a key's bytes."""
