"""In: a conversion record and both sources. Out: a parity verdict for every Cell.

Import order inside this folder, each file from those before it only:
request, exchange, layout, tolerance, compare, masks, channel, importing (both workers);
inputs, liveliness, noise, torch_record, torch_gradients, torch_side (the torch process);
cells, probe, replay, mindspore_side (the MindSpore process);
worker, blame, summary, session, ladder (this process, which imports neither framework).
"""
