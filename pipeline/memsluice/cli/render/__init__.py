"""What the commands print: rich renderables out of what was read."""
