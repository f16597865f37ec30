"""How memory is read: every entry verified, every recall published before its content is shown."""
