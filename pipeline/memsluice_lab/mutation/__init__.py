"""Mutation testing: small faults planted in the source one at a time, and whether a test fails for each.

A harness of our own, since neither tool at hand fits this tree. mutmut leaves decorated functions alone: here those are
the compiled arithmetic, the properties and the static constructors. cosmic-ray starts the whole test command anew for
every mutant (eight seconds of imports each), edits the checkout, and has no operator that leaves out a clause of a
condition, which is what went unnoticed here. Its operators are taken over, as far as they are not noise: a comparison
becomes its neighbour, not each of the seven others.
"""
