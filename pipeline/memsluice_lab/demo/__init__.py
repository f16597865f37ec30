"""The demo: a working day of three tenants with attacks, played through the real gate, embedded or on the stack."""
