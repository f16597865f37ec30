"""What the next wording signal learns from: a grammar of our own, texts composed of its lines, and public records.

Nothing of it decides yet: the gate's model is still that of :mod:`memsluice_lab.training`.
"""
