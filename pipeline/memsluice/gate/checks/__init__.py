"""One rule a file; the file's name is the prefix of its reason codes."""
