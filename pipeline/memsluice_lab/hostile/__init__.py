"""Hostile inputs for every decoder that reads what others wrote: specimens, what is done to them, and a judge."""
