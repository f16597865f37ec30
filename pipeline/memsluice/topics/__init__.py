"""Topics as code: what the YAML files say, what the broker has, and how one becomes the other."""
