"""In: the parsed arguments of one command. Out: its messages on the terminal, and its exit code.

One file a command; ``findings`` (text only) comes before all of them.
"""
