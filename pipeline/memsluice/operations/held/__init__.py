"""The quarantine, as reviewers see it: what is held and why, what became of it, and the commands that decide."""
