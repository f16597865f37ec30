"""What travels: the four kinds of event, their limits, their names on the wire, and where they lie."""
