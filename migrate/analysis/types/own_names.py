"""In: the classes of a program. Out: which of their names a Cell has of its own and a Module not.

MindSpore uses these itself: a method ``compile`` or an attribute ``cells`` of a Module would take
the place of the Cell's.
"""

from __future__ import annotations

import ast

from migrate.analysis.program import Class
from migrate.analysis.types.world import World
from migrate.syntax.trees import is_super

# dir(mindspore.nn.Cell) and what an instance holds, without what torch.nn.Module has as well;
# compile and bprop mean something else there
CELL_NAMES = frozenset(
    """
    IGNORE_LIST _add_attr _add_init_args _add_mixed_precision_flag _amp_level _auto_prefix
    _backward_hook _backward_pre_hook _bprop_debug _call_custom_bprop _call_post_process
    _call_pre_process _cell_backward_hook _cell_backward_pre_hook _cell_tag _cells
    _check_construct_args _check_parameter_consistency _children_scope_recursive _compile_cache
    _compile_phase _compiled _complex_call _construct_sig _create_time _del_attr
    _dynamic_shape_inputs _exist_names _exist_objs _forward_hook _forward_hook_always_called
    _forward_hook_with_kwargs _forward_pre_hook _forward_pre_hook_with_kwargs
    _get_attr_from_cell _get_cell_parallel_mode _get_compile_args _get_prims_recursively
    _has_config_recompute _has_mutable_args_list _id _in_strategy _init_check _init_flag
    _is_check_and_refresh _is_recursion_hook _jit_backward_hook _jit_backward_pre_hook
    _jit_config_dict _jit_forward_hook _jit_forward_pre_hook _jit_graph_name _lazy_backward_hook
    _lazy_backward_pre_hook _lazy_construct_sig _lazy_forward_hook
    _lazy_forward_hook_always_called _lazy_forward_hook_with_kwargs _lazy_forward_pre_hook
    _lazy_forward_pre_hook_with_kwargs _lazy_load_state_dict_post_hooks
    _lazy_load_state_dict_pre_hooks _lazy_non_persistent_buffers_set _lazy_state_dict_hooks
    _lazy_state_dict_pre_hooks _lazy_user_parameters _mp_comm_recompute _no_auto_lazy_inline
    _out_strategy _parallel_optimizer_comm_recompute _parallel_parameter_merge_net_dict
    _parallel_parameter_name_list _param_prefix _parameter_layout_dict _params _params_list
    _phase _phase_cache _predict _primitives _recompute _recompute_cell
    _recompute_slice_activation _run_construct _run_forward_hook _run_forward_pre_hook
    _run_grad_construct _saved_tensors_pack_hook _saved_tensors_unpack_hook _scope _self_check
    _set_attr_for_cell _set_attr_for_object _set_attr_for_param_or_param_tuple
    _set_attr_for_parameter_in_list_or_tuple _set_attr_for_params _set_jit_graph_name
    _set_recompute_scope _set_scope _shard_fn _update_local_parameters_name _user_parameters
    add_flags add_flags_recursive arguments_key bprop bprop_debug cast_inputs cell_init_args
    cell_type cells cells_and_names check_names check_names_and_refresh_name cls_name compile
    compile_and_run compile_cache compile_phase compiled construct create_time
    enable_backward_hook exist_names exist_objs extend_repr generate_scope get_flags
    get_func_graph_proto get_inputs get_mixed_precision_type get_parameters get_scope
    get_sub_cell global_cells grad_ops_label has_bprop init_parameters_data insert_child_to_cell
    insert_param_to_cell is_top_cell jit_config_dict mixed_precision_type name_cells offload
    parallel_parameter_merge_net_dict parallel_parameter_name_list param_prefix
    parameter_layout_dict parameters_and_names parameters_broadcast_dict parameters_dict phase
    phase_cache pipeline_segment pipeline_stage recompute register_backward_pre_hook
    register_parameter_forward_hook register_saved_tensors_hooks remove_redundant_parameters
    requires_grad run_construct set_boost set_broadcast_flag set_comm_fusion set_data_parallel
    set_grad set_inputs set_jit_config set_mixed_precision_type set_train shard to_float
    total_instance_count trainable_params untrainable_params update_cell_prefix update_cell_type
    update_parameters_name
    """.split()
)


def own_names(world: World) -> frozenset[str]:
    """The names of Cells that Modules of the project use for something else."""
    found: set[str] = set()
    for owner in world.program.classes.values():
        clashing = defined(owner) & CELL_NAMES
        if clashing and world.is_module(owner.key):
            found |= clashing
    return frozenset(found)


def defined(owner: Class) -> frozenset[str]:
    """What a class defines or stores on its instances."""
    names = {*owner.methods, *owner.stores}
    for statement in owner.node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names |= {t.id for t in targets if isinstance(t, ast.Name)}
    return frozenset(names)


def chooses_modes(owner: Class) -> bool:
    """Whether a class has a ``train(mode)`` of its own: torch's switch, not a training loop."""
    method = owner.methods.get("train")
    if method is None or len(method.parameters) < 2:
        return False
    return method.parameters[1].arg == "mode" or any(map(_switches, ast.walk(method.node)))


def _switches(node: ast.AST) -> bool:
    """``super().train``"""
    return isinstance(node, ast.Attribute) and node.attr == "train" and is_super(node.value)
