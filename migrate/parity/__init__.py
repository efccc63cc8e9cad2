"""Compare a torch model with its MindSpore partner, Cell by Cell, each in a process of its own.

Import order, each file from those before it only: request, exchange, layout, tolerance, compare,
masks, channel, importing, inner_calls, moments (both workers); discover, coarse, noise,
torch_values, torch_draws, torch_record, torch_forward, torch_gradients, torch_model, torch_inputs,
torch_training, torch_side (the torch process); ms_values, ms_draws, cells, probe, replay,
ms_gradients, ms_training, ms_remedies, hand.port_replay, mindspore_side (the other process);
worker, session, checks, diagnose, optimizer_state, checkpoint, recorded, journal, climb,
hand.port, ladder (this process, which imports neither framework).
"""
