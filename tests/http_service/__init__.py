"""What the HTTP services share."""
