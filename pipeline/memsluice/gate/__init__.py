"""The pure core: state, event, policy and clock in, changed rows and a verdict out. No I/O, no clock, no globals.

Lowest first: ``policy`` and ``reasons``; ``state``, the rows and what they say; ``checks``, one rule a file;
``detectors``; ``decision``, what a write and its replay share; ``commands``, one a file; ``decide``. A reason code in a
verdict begins with the name of the file, or of the folder, that gives it, so the code names what stopped a write.
"""
