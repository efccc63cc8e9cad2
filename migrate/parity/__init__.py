"""In: a conversion record and both sources. Out: a parity verdict for every Cell.

Import order inside this folder, each file from those before it only:
request, exchange, layout, tolerance, compare, masks, channel, importing (both workers);
discover, shapes, lively, coarse, noise, torch_values, torch_dropout, torch_record, torch_forward,
torch_gradients, torch_weights, torch_operators, torch_side (the torch process);
ms_values, ms_dropout, cells, probe, replay, ms_gradients, mindspore_side (the other process);
worker, session, checks, blame, climb, ladder, checkpoint (this process, which imports neither
framework).
hand/ compares a port that was written by hand, without a record; its workers are its own.
kernels is run by hand and writes coarse.
"""
