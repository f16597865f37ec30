"""The review of held writes in a full-screen terminal. Needs the extra ``review``."""
