"""The console as a whole, in a real browser: a home to show, every page of it, what escapes from one, screenshots."""
