"""Pair two models written by hand, one a framework: nothing recorded how one became the other.

Weights are paired first, by kind, name, order and shape, then Cells by the weights below them and
by the order of calls. Import order: inventory, matching, partners (pure); port_replay (the
MindSpore process); narrowing, port.
"""
