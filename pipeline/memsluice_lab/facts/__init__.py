"""A small world of facts and small causal models that learn it: some facts by heart, the others from their context."""
