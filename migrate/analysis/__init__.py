"""Analyse a program: control flow, and one lattice for each question about it."""
