"""Tests of what the console shows: nothing escapes, nothing keeps people out, and the docs show every page."""
