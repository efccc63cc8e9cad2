"""In: a program and the table. Out: the kind of every expression in it (Tensor, Module, list, ...).

kinds -> recorded -> annotations -> results -> rivals -> elimination -> world -> python_results ->
outside -> values -> datasets -> arithmetic -> frame -> binding -> given -> calling -> expressions
-> flow -> told -> parameters -> classes -> inference; each imports only from those before it.
"""
