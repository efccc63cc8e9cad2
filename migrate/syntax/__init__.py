"""Source text and its syntax tree."""
