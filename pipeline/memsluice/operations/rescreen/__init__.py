"""What another policy would have decided about history, and what reviewers' decisions say of it: reads alone."""
