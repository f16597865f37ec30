"""The pure core: state, event, policy and clock in, changed rows and a verdict out. No I/O, no clock, no globals.

One module a rule: a reason code in a verdict is ``<module>.<finding>``, so the code names the file
that stopped a write.
"""
