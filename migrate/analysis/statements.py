"""Say what single statements and clauses may do to the flow of control."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.syntax.trees import last_name


def head_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Yield the defaults and annotations of a function."""
    args = function.args
    yield from args.defaults
    yield from (d for d in args.kw_defaults if d is not None)
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    yield from (a.annotation for a in every if a is not None and a.annotation is not None)
    if function.returns is not None:
        yield function.returns


_QUIET = frozenset(
    # torch and other frameworks, the standard library: their managers let exceptions through
    "no_grad enable_grad inference_mode set_grad_enabled autocast device stream profile "
    "record_function detect_anomaly set_detect_anomaly fork_rng set_default_device "
    "deterministic_algorithms no_sync join sdpa_kernel sdp_kernel flags device_of graph "
    "saved_tensors_hooks save_on_cpu parallelize_module summon_full_params parametrize cached "
    "set_deterministic_debug_mode init_on_device context "
    "open fdopen TemporaryDirectory NamedTemporaryFile TemporaryFile SpooledTemporaryFile popen "
    "Popen urlopen closing redirect_stdout redirect_stderr nullcontext chdir scandir mmap "
    "Lock RLock Semaphore BoundedSemaphore Condition lock ThreadPoolExecutor "
    "ProcessPoolExecutor Pool ThreadPool Manager SharedMemory catch_warnings localcontext errstate "
    "printoptions ZipFile TarFile GzipFile BZ2File LZMAFile socket create_connection "
    "tqdm trange progress_bar Progress Live status File load memmap Session Client "
    "accumulate start_run init_run SummaryWriter custom_object_scope name_scope device_scope "
    "GradientTape strategy scope".split()
)


def may_swallow(item: ast.withitem) -> bool:
    """Return whether a with item may swallow exceptions, as far as the name of its manager says."""
    manager = item.context_expr
    called = manager.func if isinstance(manager, ast.Call) else manager
    name = last_name(called)
    return name not in _QUIET and not name.lower().endswith("lock")


def constant_truth(test: ast.expr) -> bool | None:
    """Return the truth of a test made of constants; None for any other."""
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    if isinstance(test, ast.Constant):
        return bool(test.value) is not negated
    return None


def irrefutable(pattern: ast.pattern) -> bool:
    """Return whether a pattern matches everything."""
    while isinstance(pattern, ast.MatchAs | ast.MatchOr):
        if isinstance(pattern, ast.MatchOr):
            pattern = pattern.patterns[-1]  # an alternative that is irrefutable has to be the last
        elif pattern.pattern is None:
            return True
        else:
            pattern = pattern.pattern
    return False


def may_raise(statement: ast.AST) -> bool:
    """Return whether a simple statement may raise: all do but those that only place constants."""
    if isinstance(statement, ast.Pass | ast.Break | ast.Continue | ast.Global | ast.Nonlocal):
        return False
    if isinstance(statement, ast.Return):
        return not (statement.value is None or isinstance(statement.value, ast.Constant))
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        plain = all(isinstance(t, ast.Name) for t in statement.targets)
        return not (plain and isinstance(statement.value, ast.Constant))
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return bool(statement.decorator_list) or any(True for _ in head_of(statement))
    return True


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Return whether an except clause takes every exception; SystemExit is no Exception."""
    return handler.type is None or getattr(handler.type, "id", "") == "BaseException"
