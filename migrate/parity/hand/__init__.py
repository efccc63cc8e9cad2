"""Pair two models written by hand, one a framework: nothing recorded how one became the other.

Weights are paired first, by kind, name, shape and order, then by the numbers that flow into their
layers; then Cells by the weights below them, by what they receive, and by the order of calls.
Import order: inventory, matching, flow, partners (pure), port.
"""
