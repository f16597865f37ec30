"""A tenant's state rows: every kind and its type (``kinds``), and what rows say: lineage, places, counts, windows."""
