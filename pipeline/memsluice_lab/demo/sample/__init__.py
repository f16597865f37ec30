"""The self-written sample: a working day of three tenants, with every class of attack, generated from a seed."""
