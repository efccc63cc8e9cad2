"""In: a verified model. Out: pytest files that verify it again, where this tool is not installed.

Import order inside this folder: support and torch_check (copied beside the tests), copies,
fixtures, pages.
"""
