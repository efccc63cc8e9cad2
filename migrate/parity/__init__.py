"""Compare a torch model with its MindSpore partner, Cell by Cell, each in a process of its own.

Import order, each file from those before it only: exchange, compare, messages, request, masks,
importing, inner_calls, weights (both workers); discover, noise, torch_draws, torch_record,
torch_forward, torch_gradients, torch_model, torch_training, torch_regimes, torch_side (the torch
process); ms_draws, cells, probe, replay, ms_gradients, ms_training, ms_remedies, mindspore_side
(the other process); worker, session, checks, hand.inventory, hand.matching, hand.flow,
hand.partners, reproduction, diagnose, optimizer_state, checkpoint, recorded, climb, hand.port,
ladder (this process, which imports neither framework).
"""
