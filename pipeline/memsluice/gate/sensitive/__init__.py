"""What finds secrets and personal data in a text: pure scanners, each over the text and its own few literal hints.

The rule that uses them is :mod:`memsluice.gate.checks.sensitive`.
"""
