"""In: files and what is known of them. Out: the findings that a conversion would give.

Import order inside this folder: findings, baseline, gather, render.
"""
