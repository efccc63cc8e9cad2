"""In: an optimizer of mindspore.experimental.optim. Out: schedules of its learning rates.

They stand where mindspore.experimental.optim.lr_scheduler has no such schedule, and for classes
that derive from torch's; rates are Python numbers here, as in torch.
"""

import math

from mindspore import Parameter, Tensor, ops
from mindspore.experimental.optim import lr_scheduler

from migrate.helpers.parameter_groups import number, numbers, param_groups


def last_lr(scheduler):
    """Reproduces ``get_last_lr()`` of torch's schedules: a list of Python numbers."""
    kept = vars(scheduler).get("last_rates")
    return numbers(scheduler.get_last_lr()) if kept is None else list(kept)


def with_rates_kept(scheduler):
    """A schedule of MindSpore that knows the rates of its own last step, as torch's do.

    MindSpore's own ``get_last_lr()`` returns the present rates of the optimizer's groups, also
    where another schedule or the program set them.
    """
    make_step = scheduler.step

    def step(*args, **settings):
        make_step(*args, **settings)
        scheduler.last_rates = numbers(scheduler.get_last_lr())

    scheduler.step, scheduler.last_rates = step, numbers(scheduler.get_last_lr())
    return scheduler


def whole_epochs(number):
    """A number of epochs as int: torch takes 1.0 as well. Raises ValueError for a fraction."""
    if number != int(number):
        raise ValueError(f"a rate changes after whole epochs, not after {number}")
    return int(number)


def restart_at(scheduler, epoch):
    """Reproduces ``step(epoch)`` of torch's CosineAnnealingWarmRestarts; a part of an epoch counts.

    MindSpore's raises where ``T_mult`` is more than 1. Raises ValueError for a negative epoch.
    """
    if epoch < 0:
        raise ValueError(f"Expected non-negative epoch, but got {epoch}")
    first, factor = int(number(scheduler.T_0)), scheduler.T_mult
    length, done = first, epoch
    if epoch >= first and factor == 1:
        done = epoch % first
    elif epoch >= first:
        cycle = int(math.log(epoch / first * (factor - 1) + 1, factor))
        done = epoch - first * (factor**cycle - 1) / (factor - 1)
        length = first * factor**cycle
    ops.assign(scheduler.T_i, Tensor(length, scheduler.T_i.dtype))
    ops.assign(scheduler.T_cur, Tensor(done, scheduler.T_cur.dtype))
    ops.assign(scheduler.last_epoch, Tensor(math.floor(epoch), scheduler.last_epoch.dtype))
    for group, rate in zip(scheduler.optimizer.param_groups, scheduler.get_lr()):
        ops.assign(group["lr"], rate)
    if "last_rates" in vars(scheduler):
        scheduler.last_rates = numbers(scheduler.get_last_lr())


def of_epoch(function):
    """A factor for LambdaLR or MultiplicativeLR that is given the epoch as an int, as in torch."""
    if isinstance(function, (list, tuple)):
        return [of_epoch(one) for one in function]
    return lambda epoch: function(int(epoch))


class LambdaLR(lr_scheduler.LambdaLR):
    """torch.optim.lr_scheduler.LambdaLR as a base class or value: factors are given an int."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        super().__init__(optimizer, of_epoch(lr_lambda), last_epoch)


class LRScheduler(lr_scheduler.LRScheduler):
    """Reproduces torch.optim.lr_scheduler.LRScheduler: the base of schedules with a ``get_lr``.

    It derives from MindSpore's for isinstance only: rates and epochs are Python numbers here.
    """

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer = optimizer
        groups = param_groups(optimizer)
        if last_epoch == -1:
            for group in groups:
                group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    def get_lr(self):
        """The rate of every group for ``last_epoch``."""
        raise NotImplementedError

    def get_last_lr(self):
        """The rates that were set last, as Python numbers."""
        return self._last_lr

    def step(self, epoch=None):
        """Go on to the next epoch, or to the given one, and set the rates."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        values = self._get_closed_form_lr() if closed else self.get_lr()
        for group, value in zip(param_groups(self.optimizer), values):
            group["lr"] = value
        self._last_lr = [float(number(value)) for value in values]


class ChainedScheduler:
    """Reproduces torch.optim.lr_scheduler.ChainedScheduler: every schedule steps."""

    def __init__(self, schedulers, optimizer=None):
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or self._schedulers[0].optimizer

    def step(self):
        """One step of each."""
        for scheduler in self._schedulers:
            scheduler.step()

    def get_last_lr(self):
        """The rates that were set last, as Python numbers."""
        return last_lr(self._schedulers[-1])


def for_each_group(value, optimizer):
    """A setting for every group of the optimizer."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value] * len(optimizer.param_groups)


def annealed(start, end, share, strategy):
    """From ``start`` (share 0) to ``end`` (share 1), along half a cosine or a line."""
    if strategy == "linear":
        return (end - start) * share + start
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


class SWALR(LRScheduler):
    """Reproduces torch.optim.swa_utils.SWALR: from the present rate to that of the averaging."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, rate in zip(param_groups(optimizer), for_each_group(swa_lr, optimizer)):
            group["swa_lr"] = rate
        self.anneal_epochs, self.strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The rates, from those that the optimizer has now."""
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        length = max(1, self.anneal_epochs)
        before = annealed(0.0, 1.0, max(0, min(1, (step - 1) / length)), self.strategy)
        now = annealed(0.0, 1.0, max(0, min(1, step / length)), self.strategy)
        rates = []
        for group in param_groups(self.optimizer):
            rate, goal = group["lr"], group["swa_lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


def scheduler_state(scheduler):
    """Reproduces ``state_dict()`` of torch's schedules: what is counted, as Python numbers."""
    state = {}
    for key, value in vars(scheduler).items():
        if key == "_schedulers":
            state[key] = [scheduler_state(one) for one in value]
        elif key == "last_epoch":
            state[key] = int(value)
        elif key == "_last_lr":
            state[key] = last_lr(scheduler)
        elif isinstance(value, (list, tuple)) and key == "base_lrs":
            state[key] = numbers(value)
        elif isinstance(value, (Parameter, int, float, str)):
            state[key] = number(value)
    return state


def load_scheduler_state(scheduler, state_dict):
    """Reproduces ``load_state_dict()`` for what ``scheduler_state`` gave; rates stay."""
    for key, value in state_dict.items():
        kept = getattr(scheduler, key, None)
        if key == "_schedulers":
            for one, state in zip(kept, value):
                load_scheduler_state(one, state)
        elif isinstance(kept, Parameter):
            ops.assign(kept, Tensor(value, kept.dtype))
        elif key == "base_lrs" and isinstance(kept[0], Tensor):
            scheduler.base_lrs = [Tensor(rate, old.dtype) for rate, old in zip(value, kept)]
        elif key != "_last_lr" or not isinstance(kept[0], Tensor):
            setattr(scheduler, key, value)
        elif "last_rates" in vars(scheduler):
            scheduler.last_rates = numbers(value)
