"""What operators look at: an entry's whole life, made from the audit topic. It decides nothing."""
