"""How a command says that its signers set detection aside; whoever signs one imports no detector for that."""

DESPITE_PARAMETER = "despite"
DETECTION = "detection"
"""``parameters.despite`` says that the signers set aside what detection finds in the content now."""
