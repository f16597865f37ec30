"""What operators look at: an entry's whole life, and the stream as it runs. Made from the audit topic; it decides nothing."""
