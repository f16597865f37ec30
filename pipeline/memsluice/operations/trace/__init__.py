"""What operators look at: an entry's whole life, and the stream as it runs; made from the audit topic."""
