"""RePCS: the score, the theorems, the threshold."""
