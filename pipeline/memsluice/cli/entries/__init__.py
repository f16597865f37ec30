"""Commands about one entry: its trace, its lineage, and what operators sign about it."""
