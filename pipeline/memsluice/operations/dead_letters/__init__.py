"""Dead letters, as operators see them: what could not be authenticated, what it claims, and the ways out."""
