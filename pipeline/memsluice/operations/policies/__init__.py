"""Policies on their way: what differs between two, what the audit says is in force, putting one in force."""
