"""The recall service over real HTTP, and the client that asks it."""
