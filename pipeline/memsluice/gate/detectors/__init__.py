"""The detectors: what a write says, how near it comes to what is asked, and how unusual that is."""
