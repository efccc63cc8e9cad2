"""In: parameters and a closure that computes their loss and gradients. Out: steps of L-BFGS.

Algorithms 7.4, 7.5 (two-loop recursion) and 3.5, 3.6 (line search) of Nocedal and Wright, Numerical
Optimization, with the tests and constants of torch.optim.LBFGS.
"""

import math

from mindspore import ops

from migrate.helpers.kept_gradients import apply_gradients, gradient_of
from migrate.helpers.own_optimizers import OptimizerWithStep
from migrate.helpers.parameter_groups import param_groups, trainable


def step_by(optimizer, closure):
    """Reproduces ``step(closure)``: the closure computes the loss, then the weights change."""
    if closure is None or hasattr(optimizer, "step"):
        return optimizer.step(closure) if closure is not None else apply_gradients(optimizer)
    loss = closure()
    apply_gradients(optimizer)
    return loss


def dot(x, y):
    """The inner product of two vectors, as a number."""
    return (x * y).sum().item()


def largest(x):
    """The largest absolute value of a vector, as a number."""
    return x.abs().max().item()


def cubic_minimum(first, second, bounds=None):
    """Where the cubic through two points (place, value, gradient, slope) is smallest."""
    (x1, f1, _, g1), (x2, f2, _, g2) = first, second
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


def bracketed(at, start, t, searches, c1, c2):
    """(points around a step that meets the Wolfe conditions, whether one does, evaluations)."""
    _, f, _, slope = start
    last, new, count = start, at(t), 0
    while count < searches:
        if new[1] > f + c1 * new[0] * slope or (count > 1 and new[1] >= last[1]):
            return [last, new], False, count
        if abs(new[3]) <= -c2 * slope:
            return [new], True, count
        if new[3] >= 0:
            return [last, new], False, count
        bounds = (new[0] + 0.01 * (new[0] - last[0]), new[0] * 10)
        last, new = new, at(cubic_minimum(last, new, bounds))
        count += 1
    return [start, new], False, count


def strong_wolfe(at, start, t, d_norm, tolerance_change, searches):
    """The point that a line search ends at, and how often the loss was computed.

    ``at(t)`` is (t, loss, gradient, slope) behind a step of length t; ``start`` that of 0.
    """
    c1, c2, asked = 1e-4, 0.9, 1
    _, f, _, slope = start
    bracket, done, count = bracketed(at, start, t, searches, c1, c2)
    asked += count
    stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and count < searches:
        if abs(bracket[1][0] - bracket[0][0]) * d_norm < tolerance_change:
            break
        t = cubic_minimum(bracket[0], bracket[1])
        left, right = min(p[0] for p in bracket), max(p[0] for p in bracket)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = at(t)
        asked += 1
        count += 1
        if new[1] > f + c1 * t * slope or new[1] >= bracket[low][1]:
            bracket[high] = new
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(new[3]) <= -c2 * slope:
                done = True
            elif new[3] * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    return bracket[low if len(bracket) > 1 else 0], asked


class LBFGS(OptimizerWithStep):
    """Reproduces torch.optim.LBFGS: ``step(closure)`` computes loss and gradients several times.

    The closure returns the loss and leaves the gradients with the weights. Everything between two
    evaluations is computed operator by operator, in both modes.
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        settings = {
            "lr": float(lr),
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(trainable(params), settings)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def construct(self, gradients):
        raise NotImplementedError("LBFGS computes the loss again and again: give step a closure")

    def gathered(self):
        """The gradients of all weights as one vector; zeros where a weight has none."""
        found = [(weight, gradient_of(weight)) for weight in self.parameters]
        return ops.cat([(ops.zeros_like(w) if g is None else g).reshape(-1) for w, g in found])

    def moved(self, values, step_size, direction):
        """Set the weights to ``values`` and a step in a direction."""
        offset = 0
        for weight, value in zip(self.parameters, values):
            part = direction[offset : offset + weight.size].reshape(weight.shape)
            ops.assign(weight, value + step_size * part)
            offset += weight.size

    def values(self):
        """Copies of the weights."""
        return [weight.value().copy() for weight in self.parameters]

    def direction(self, state, gradient, history_size):
        """The next direction, and the history it is computed from."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = gradient - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        ys = dot(y, s)
        if ys > 1e-10:
            if len(dirs) == history_size:
                for old in (dirs, steps, ro):
                    old.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / dot(y, y)
        q, al = -gradient, [0.0] * len(dirs)
        for i in reversed(range(len(dirs))):
            al[i] = dot(steps[i], q) * ro[i]
            q = q - al[i] * dirs[i]
        r = q * state["H_diag"]
        for i in range(len(dirs)):
            r = r + (al[i] - dot(dirs[i], r) * ro[i]) * steps[i]
        return r

    def step(self, closure):
        """Reproduces LBFGS.step. Returns the first loss."""
        group = param_groups(self)[0]
        lr, tolerance_change = group["lr"], group["tolerance_change"]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self.parameters[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, gradient, evaluations = float(first), self.gathered(), 1
        state["func_evals"] += 1
        found, count = largest(gradient) <= group["tolerance_grad"], 0
        while not found and count < group["max_iter"]:
            count += 1
            state["n_iter"] += 1
            d = state["d"] = self.direction(state, gradient, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            t = state["t"] = (
                min(1.0, 1.0 / gradient.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            )
            slope, asked = dot(gradient, d), 0
            if slope > -tolerance_change:
                break
            old = self.values()
            if search is not None:
                start, most = (0, loss, gradient, slope), group["max_eval"] - evaluations

                def at(t, d=d, old=old):
                    self.moved(old, t, d)
                    loss, gradient = float(closure()), self.gathered()
                    return t, loss, gradient, dot(gradient, d)

                point, asked = strong_wolfe(at, start, t, largest(d), tolerance_change, most)
                t, loss, gradient, _ = point
                state["t"] = t
            self.moved(old, t, d)
            if search is None and count != group["max_iter"]:
                loss, gradient, asked = float(closure()), self.gathered(), 1
            evaluations += asked
            state["func_evals"] += asked
            found = largest(gradient) <= group["tolerance_grad"]
            if evaluations >= group["max_eval"] or largest(d * t) <= tolerance_change:
                break
            if abs(loss - state["prev_loss"]) < tolerance_change:
                break
        return first
