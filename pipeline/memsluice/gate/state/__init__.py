"""A tenant's state rows: lineage, placement, counts, windows."""
