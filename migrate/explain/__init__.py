"""In: a torch name or the code of a flag, and the table. Out: what is known of it, line by line."""

from migrate.explain.names import explain_code, is_code
from migrate.explain.page import explain

__all__ = ["explain", "explain_code", "is_code"]
