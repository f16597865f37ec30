"""What the console's pages sign in a browser, and what its server takes of that."""
