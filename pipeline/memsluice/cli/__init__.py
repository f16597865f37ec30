"""The command line, ``memsluice``: one module a group of commands, mounted by :mod:`memsluice.cli.main`."""
