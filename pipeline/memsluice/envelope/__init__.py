"""How it is signed, sealed and encoded: DSSE, keys, the registry of credentials, and the one codec."""
