"""From places to decisions to edits to accounts; the only package that knows the order."""
