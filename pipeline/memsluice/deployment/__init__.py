"""Where a deployment's files lie and how its broker and store are reached."""
