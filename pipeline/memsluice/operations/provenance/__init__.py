"""Where entries come from and what came of them, from the audit alone; and the orders that follow from it."""
