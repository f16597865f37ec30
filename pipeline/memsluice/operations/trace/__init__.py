"""The history of one event id, read from the audit topic."""
