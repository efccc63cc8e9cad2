"""Compare a torch model with its MindSpore partner, Cell by Cell, each in a process of its own.

Import order, each file from those before it only: request, exchange, layout, tolerance, compare,
masks, channel, importing, inner_calls, moments (both workers); discover, noise, torch_values,
torch_draws, torch_record, torch_forward, torch_gradients, torch_model, torch_inputs,
torch_training, torch_files, torch_side (the torch process); ms_values, ms_draws, cells, probe,
replay, ms_gradients, ms_training, ms_files, hand.port_replay, mindspore_side (the other process);
worker, session, checks, first_call, diagnose, recorded, journal, climb, hand.port, ladder (this
process, which imports neither framework).
"""
