"""What recalls show over time, told by what was returned to whom: pure, in bounded memory, and never a verdict."""
