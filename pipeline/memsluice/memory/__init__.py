"""Where agents' memory lives: what every adapter stands on, on a deployment or in one process."""
