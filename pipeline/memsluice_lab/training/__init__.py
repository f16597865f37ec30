"""Training of the default detector's classifier: self-made text, public records, one reproducible command."""
