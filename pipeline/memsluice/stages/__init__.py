"""What the gate does with each record, in three steps: *seal*, *screen*, *land*."""
