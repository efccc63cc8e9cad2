"""In: a program and the table. Out: the kind of every expression in it (Tensor, Module, list, ...).

kinds -> recorded -> annotations -> results -> rivals -> elimination -> world -> python_results ->
values -> datasets -> moves -> operators -> frame -> binding -> given -> calling -> expressions ->
branches -> flow -> parameters -> classes -> inference; each imports only from those before it.
"""
