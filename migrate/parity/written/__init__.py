"""In: a verified model. Out: pytest files that verify it again, where this tool is not installed.

support and torch_check are copied beside the tests that `pages` writes.
"""
