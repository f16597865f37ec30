"""Tests of what is read for instructions before it is shown."""
