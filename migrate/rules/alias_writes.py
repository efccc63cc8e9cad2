"""In: a target and a value, or a tensor that is changed. Out: what the names hold after that."""

from __future__ import annotations

import ast

from migrate.rules.alias_values import Values, key_of
from migrate.rules.stopped import is_stopped
from migrate.rules.storage import (
    ELEMENTS,
    MAYBE,
    NO_REFS,
    SAME,
    VIEW,
    Ref,
    Refs,
    is_held,
    lender,
    made_as,
    regions,
    root,
)  # fmt: skip
from migrate.rules.written import Holder, target_of


class Writes(Values):
    """Binds names, and changes tensors.

    ``apart``: in an optimizer no gradient is recorded; there a tensor that some object may hold
    (``state["mean"]``, made here in the first round) is changed itself as well.
    """

    apart = False

    # -- binding and writing --------------------------------------------------------------------

    def bind(self, target: ast.expr, refs: Refs) -> None:
        if isinstance(target, ast.Name):
            self.state.names[target.id] = refs
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, part in enumerate(target.elts):
                part = part.value if isinstance(part, ast.Starred) else part
                self.bind(part, self._part(refs, index))
        elif isinstance(target, ast.Attribute):
            self.state.put(self.holders(target.value), target.attr, refs, anew=True)
        elif isinstance(target, ast.Subscript) and not self._tensor(target.value):
            self.value(target.slice)
            key = key_of(target.slice)
            self.state.put(self.holders(target.value), key or ELEMENTS, refs, anew=bool(key))

    def _part(self, refs: Refs, index: int) -> Refs:
        """One of the values that an unpacking gives."""
        found: set[Ref] = set()
        for ref in refs:
            alone = frozenset((ref,))
            if (ref.region, f"#{index}") in self.state.inside:
                found |= self.state.inside[(ref.region, f"#{index}")]
            elif (ref.region, ELEMENTS) in self.state.inside or is_held(ref.region):
                found |= self.state.get(alone, ELEMENTS)
            elif ref.how or ref.region[0] != "new":
                found |= made_as(alone, VIEW)
            else:
                found.add(Ref(("item", ref.region, index)))
        return frozenset(found)

    def write(self, by: ast.AST, expr: ast.expr, refs: Refs, mode: str) -> Refs:
        """The tensor ``expr`` changes; ``mode`` says what becomes of the name it has.

        "bound": it is bound anew; "again": the statement can bind it anew; "": it keeps the old.
        """
        target, key = target_of(self.scene, expr), id(by)
        self.note_given(by, refs)
        hit = regions(refs)
        for name, seen in self.flight:
            if hit & regions(self.state.reach(seen)):
                self.found.seen.setdefault(key, name)
        known = [r for r in refs if r.how < MAYBE]
        same = bool(known) and not any(r.how for r in refs)
        held = same and all(self.state.is_object(r.region) for r in refs)
        held = held or (same and self.apart and any(is_held(r.region) for r in refs))
        places = target.holder in (Holder.OUTER, Holder.PLACE)
        collected = target.holder is Holder.ELEMENT and self._keeps_no_gradient(by, refs)
        if _changes_object(by, expr) and (places or collected or (held and mode != "item")):
            self.found.assigned.add(key)
            self.state.write(refs, key, assigned=True)
            return refs
        self.state.write(refs, key)
        new = self.state.make(key)
        if target.holder is Holder.ELEMENT and mode:
            self._renew_elements(target.expr, refs, key, new)
        elif mode and target.name in self.state.names:  # also a number: a sum that starts as 0
            again = -key if mode == "again" else 0
            self.state.names[target.name] = frozenset((new._replace(stale=again),))
        return frozenset((new,))

    def _keeps_no_gradient(self, by: ast.AST, refs: Refs) -> bool:
        """Whether whole tensors that were made here are changed where nothing is differentiated.

        A value can then be put into the very object, whichever of them it is.
        """
        whole = bool(refs) and all(r.how == SAME and r.region[0] in ("new", "old") for r in refs)
        return whole and is_stopped(self.scene, self.scene.file, by)

    def note_given(self, by: ast.AST, refs: Refs) -> None:
        """The parameters whose storage a write changes, and whether it may change a part only."""
        if any(ref.how == VIEW for ref in refs):
            self.found.parts.add(id(by))
        for ref in refs:
            if ref.how == MAYBE:
                continue
            name, before = lender(ref.region), root(ref.region)
            found = {name: ref.how} if name else {}
            if before[0] in ("new", "old"):  # what an earlier write made of it
                found |= self.found.given.get(before[1], {})  # type: ignore[call-overload]
            given = self.found.given.setdefault(id(by), {}) if found else {}
            for lent, how in found.items():
                given[lent] = max(how, given.get(lent, SAME))

    def _renew_elements(self, expr: ast.expr, refs: Refs, key: int, new: Ref) -> None:
        """``ys[i] += 1`` puts the new tensor where the old one was."""
        assert isinstance(expr, ast.Subscript)
        for holder in self.holders(expr.value):
            place = (holder.region, ELEMENTS)
            held = self.state.inside.get(place, NO_REFS)
            kept = {r._replace(stale=0) if r.stale == key and not r.how else r for r in held}
            self.state.inside[place] = frozenset(kept | {new})


def _changes_object(by: ast.AST, expr: ast.expr) -> bool:
    """A method, an item: what is written for these can change the very object; no layer can."""
    if not isinstance(by, ast.Call):
        return True
    return isinstance(by.func, ast.Attribute) and (
        by.func.value is expr or "init" in ast.unparse(by.func)
    )
