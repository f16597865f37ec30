"""The ingest service: events over HTTP, and back what became of them, for programs in any language."""
