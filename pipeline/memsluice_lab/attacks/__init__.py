"""The attack side of seed 000 (MEMSAD): its three attacks, what they reach, and its tables beside ours.

Written from the paper's description (Sections 3 and 6.1, Table 1); where it leaves something open, the module that
needs it says what was chosen. Nothing of the gate imports this.
"""
