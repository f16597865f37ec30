"""The ingest service over real HTTP: who may publish what, what is accepted, and who hears what became of it."""
