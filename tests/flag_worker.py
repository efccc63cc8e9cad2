"""Run converted files with flags in one process of MindSpore: what raises, in both modes."""

# ruff: noqa: B023, each function is called where it is made

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def outcome(act: Any) -> str:
    """ "raises" where the flag's exception arrives, else the value or the other exception."""
    try:
        value = act()
    except BaseException as error:  # any exception is an answer
        text = f"{type(error).__name__}: {error}"
        return "raises" if "torch2ms " in text else text[:300]
    return repr(value)[:100]


def values(module: Any) -> dict[str, str]:
    """Every position outside of Cells."""
    import mindspore as ms
    import numpy as np

    m = module
    acts = {
        "VALUE": lambda: m.VALUE + 1,
        "VALUE truth": lambda: bool(m.VALUE),
        "VALUE text": lambda: f"{m.VALUE}",
        "VALUE attribute": lambda: m.VALUE.x,
        "VALUE equality": lambda: m.VALUE == 3,
        "VALUE instance": lambda: isinstance(m.Member(), m.VALUE),
        "ENTRY": lambda: m.ENTRY["wrong"](3),
        "ENTRY list": lambda: m.ENTRY["list"][1] * 2,
        "FIRST": lambda: m.FIRST(),
        "MADE": lambda: len(m.MADE),
        "TEXT": lambda: "a" + m.TEXT,
        "PART": lambda: m.PART(),
        "later": lambda: m.later(1),
        "apex": lambda: m.apex.amp,
        "default": lambda: m.default(None).x,
        "decorated": lambda: m.decorated(1),
        "Derived": lambda: m.Derived(),
        "Based": lambda: m.Based(),
        "Based attribute": lambda: m.Based.other,
        "Member.bad": lambda: m.Member.bad + 1,
        "Member.both": lambda: m.Member().both,
        "chosen": lambda: m.chosen(1, True),
        "guarded": lambda: m.guarded(1, True),
        "listed": lambda: m.listed([1]),
        "called_later": lambda: m.called_later(1)[0](),
        "tested": lambda: m.tested(1),
        "second_test": lambda: m.second_test(0),
        "looped": lambda: m.looped(1),
        "entered": lambda: m.entered(1),
        "repeated": lambda: m.repeated(1),
        "on_one_line": lambda: m.on_one_line(1),
        "asserted": lambda: m.asserted(0),
        "shown": lambda: m.shown(1, True),
        "matched": lambda: m.matched(2),
        "nested": lambda: m.nested(1)() + 1,
        "closed": lambda: m.closed(1),
        "spread": lambda: m.spread(ms.Tensor([1.0, 2.0])),
        "LIMIT": lambda: m.LIMIT + 1,
        "is_optimizer": lambda: m.is_optimizer(ms.Tensor(1.0)),
    }
    alive = {
        "ENTRY right": lambda: callable(m.ENTRY["right"]),
        "CHOSEN": lambda: m.CHOSEN,
        "annotated": lambda: m.annotated(3),
        "default given": lambda: m.default(3),
        "wrapped": lambda: m.wrapped(3),
        "Based setting": lambda: m.Based.setting,
        "Member.good": lambda: m.Member.good,
        "instance": lambda: isinstance(3, m.VALUE),
        "caught": lambda: m.caught(9),
        "chosen": lambda: m.chosen(1, False),
        "guarded": lambda: m.guarded(0, False),
        "listed": lambda: m.listed([]),
        "called_later": lambda: m.called_later(1)[1],
        "second_test": lambda: m.second_test(1),
        "asserted": lambda: m.asserted(1),
        "shown": lambda: m.shown(1, False),
        "is_masked": lambda: m.is_masked(ms.Tensor(1.0)),
        "spread": lambda: float(m.spread(np.array([1.0, 3.0]))),
    }
    found = {name: outcome(act) for name, act in acts.items()}
    return found | {f"alive {name}": outcome(act) for name, act in alive.items()}


class Parts:
    def get_part(self, x: Any) -> Any:
        return x


CELLS = ("Top", "Looped", "InMethod", "OneLine", "WithoutGradient", "Written", "Head")


def cells(module: Any) -> dict[str, str]:
    import mindspore as ms

    found = {}
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        if mode == ms.GRAPH_MODE:
            ms.set_context(jit_syntax_level=ms.STRICT)
        word = "graph" if mode == ms.GRAPH_MODE else "pynative"
        for name in CELLS:
            found[f"{word} {name}"] = outcome(lambda: getattr(module, name)()(x).asnumpy())
        found[f"{word} Unknown"] = outcome(lambda: module.Unknown(Parts())(x).asnumpy())
        training = module.Chosen()
        training.set_train()
        found[f"{word} Chosen"] = outcome(lambda: training(x).asnumpy())
        evaluated = module.Chosen()
        evaluated.set_train(False)
        found[f"{word} alive Chosen"] = outcome(lambda: evaluated(x).asnumpy().sum())
        found[f"{word} alive Behind"] = outcome(lambda: module.Behind()(x).asnumpy().sum())
        found[f"{word} Behind"] = outcome(lambda: module.Behind()(x * 1000).asnumpy().sum())
    return found


def main(folder: Path) -> None:
    found = {}
    for path in sorted(folder.glob("effect_*.py")):
        found[path.stem] = outcome(lambda: load(path))
    module = load(folder / "positions.py")
    found |= values(module) | cells(module)
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
