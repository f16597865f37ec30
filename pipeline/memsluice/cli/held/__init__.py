"""``memsluice quarantine``: held writes."""
