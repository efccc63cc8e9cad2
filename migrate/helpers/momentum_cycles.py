"""In: an optimizer of mindspore.experimental.optim. Out: schedules that change its momentum too.

The momentum becomes a Parameter that the train step reads, so that graph mode sees it change.
"""

import math

import mindspore as ms
from mindspore import Parameter, Tensor, ops

from migrate.helpers.parameter_groups import param_groups
from migrate.helpers.schedulers import LRScheduler, annealed, for_each_group


def momentum_of_groups(optimizer):
    """A Parameter for the momentum of every group, the first beta where that is its name.

    It is read by the train step, so that a schedule can change it in graph mode as well.
    """
    found = []
    for index, group in enumerate(optimizer.param_groups):
        betas = "betas" in group
        if type(optimizer).__name__ not in ("SGD", "Adam", "AdamW") or (
            betas and not hasattr(optimizer, "max_exp_avg_sq")
        ):
            raise NotImplementedError(f"the momentum of {type(optimizer)} cannot be changed")
        now = group["betas"][0] if betas else group["momentum"]
        if not isinstance(now, Parameter):
            now = Parameter(
                Tensor(float(now), ms.float32), f"momentum_group_{index}", requires_grad=False
            )
            group["betas" if betas else "momentum"] = (now, group["betas"][1]) if betas else now
        found.append(now)
    return found


class CyclicLR(LRScheduler):
    """Reproduces torch.optim.lr_scheduler.CyclicLR, which lets the momentum cycle as well."""

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        lows = for_each_group(base_lr, optimizer)
        if last_epoch == -1:
            for group, rate in zip(param_groups(optimizer), lows):
                group["lr"] = rate
        self.max_lrs = for_each_group(max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.custom = mode, gamma, scale_fn
        by_cycle = scale_mode if scale_fn is not None else "cycle"
        self.scale_mode = "iterations" if scale_fn is None and mode == "exp_range" else by_cycle
        self.momenta = momentum_of_groups(optimizer) if cycle_momentum else []
        self.base_momentums = for_each_group(base_momentum, optimizer)
        self.max_momentums = for_each_group(max_momentum, optimizer)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x):
        """How high a cycle (or an iteration) goes, as a share of the first."""
        if self.custom is not None:
            return self.custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        """The rates; the momentum is set on the way."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        share = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        share = share * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        for kept, low, high in zip(self.momenta, self.base_momentums, self.max_momentums):
            ops.assign(kept, Tensor(high - (high - low) * share, ms.float32))
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs)]


def phases_of_one_cycle(steps, share, three):
    """(end of the phase, rate at its start and end, momentum at its start and end) of each."""
    first, last = float(share * steps) - 1, steps - 1
    up = (first, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        return [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    second = float(2 * share * steps) - 2
    return [
        up,
        (second, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]


class OneCycleLR(LRScheduler):
    """Reproduces torch.optim.lr_scheduler.OneCycleLR, which lets the momentum cycle as well."""

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        self.total_steps = epochs * steps_per_epoch if total_steps is None else total_steps
        self.strategy = anneal_strategy
        self.phases = phases_of_one_cycle(self.total_steps, pct_start, three_phase)
        self.momenta = momentum_of_groups(optimizer) if cycle_momentum else []
        if last_epoch == -1:
            highest = for_each_group(max_lr, optimizer)
            low = for_each_group(base_momentum, optimizer)
            high = for_each_group(max_momentum, optimizer)
            for index, group in enumerate(param_groups(optimizer)):
                group["initial_lr"] = highest[index] / div_factor
                group["max_lr"] = highest[index]
                group["min_lr"] = group["initial_lr"] / final_div_factor
                group["max_momentum"], group["base_momentum"] = high[index], low[index]
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The rates; the momentum is set on the way."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"step {self.last_epoch} of a schedule of {self.total_steps} steps")
        start = 0.0
        for phase in self.phases:
            end, *names = phase
            if self.last_epoch <= end or phase is self.phases[-1]:
                break
            start = end
        share = (self.last_epoch - start) / (end - start)
        groups = param_groups(self.optimizer)
        for kept, group in zip(self.momenta, groups):
            value = annealed(group[names[2]], group[names[3]], share, self.strategy)
            ops.assign(kept, Tensor(value, ms.float32))
        return [annealed(g[names[0]], g[names[1]], share, self.strategy) for g in groups]
