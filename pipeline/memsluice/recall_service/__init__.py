"""The recall service: memory over HTTP for agents that hold no key of the gate."""
