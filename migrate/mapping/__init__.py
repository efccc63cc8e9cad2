"""Rows and facts: what torch's names mean, and which row admits a call."""
