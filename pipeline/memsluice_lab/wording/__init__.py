"""What the wording signal learns from, and how: a grammar of our own, public records, frames around both."""
