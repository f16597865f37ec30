"""The console, driven as people and attackers do."""
