"""In: a program and the table. Out: the kind of every expression in it (Tensor, Module, list, ...).

kinds -> names -> annotations -> results -> expressions -> flow -> inference; each imports only
from those before it.
"""
