"""``memsluice doctor``: what a deployment needs to run, looked at one by one, with what to do where it is not so."""
