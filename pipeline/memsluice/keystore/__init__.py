"""The gate's keys and the registry of credentials: their files, the store over them, rotation."""
