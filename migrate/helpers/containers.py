"""In: Cells and Parameters. Out: containers that behave as torch.nn's, children named by path."""

import sys
from collections import OrderedDict

import mindspore as ms
from mindspore import nn


class Sequential(nn.SequentialCell):
    """Reproduces torch.nn.Sequential exactly; also as a base class.

    A child that is set as an attribute or added by name joins the chain; a slice shares its
    Cells, whose Parameters keep their names.
    """

    def insert_child_to_cell(self, child_name, child_cell):
        super().insert_child_to_cell(child_name, child_cell)
        if "cell_list" in self.__dict__:
            relink(self)

    def __delattr__(self, name):
        if name in self._cells:
            del self._is_dynamic_name[list(self._cells).index(name)]
        super().__delattr__(name)
        self.cell_list = list(self._cells.values())

    def update_parameters_name(self, prefix="", recurse=True):
        self._names_below = prefix
        super().update_parameters_name(prefix, recurse)

    def __getitem__(self, index):
        if not isinstance(index, slice):
            return list(self._cells.values())[index]
        part = Sequential()
        for name, cell in list(self._cells.items())[index]:
            part.insert_child_to_cell(name, cell)
        return part

    def __iter__(self):
        return iter(list(self._cells.values()))

    def append(self, module):
        name = str(len(self._cells))
        module.update_parameters_name(self.__dict__.get("_names_below", "") + name + ".")
        self.insert_child_to_cell(name, module)
        return self

    def extend(self, sequential):
        for module in list(sequential):
            self.append(module)
        return self

    def insert(self, index, module):
        self._insert(index, module)
        return self

    def pop(self, key):
        module = self[key]
        del self[key]
        return module


class ModuleList(nn.CellList):
    """Reproduces torch.nn.ModuleList exactly; takes any iterable, slices keep Parameter names.

    Graph mode takes a CellList for a list of Cells, and calls only what is none.
    """

    def __init__(self, modules=None):
        super().__init__()
        if type(self).construct is not nn.CellList.construct:
            self.__dict__.pop("__cell_as_list__", None)
        if modules is not None:
            self.extend(modules)

    def update_parameters_name(self, prefix="", recurse=True):
        self._names_below = prefix
        super().update_parameters_name(prefix, recurse)

    def __getitem__(self, index):
        if not isinstance(index, slice):
            return list(self._cells.values())[index]
        part = ModuleList()
        for number, cell in enumerate(list(self._cells.values())[index]):
            part.insert_child_to_cell(str(number), cell)
        return part

    def __add__(self, other):
        joined = ModuleList()
        for number, cell in enumerate(list(self) + list(other)):
            joined.insert_child_to_cell(str(number), cell)
        return joined

    def append(self, module):
        name = str(len(self._cells))
        if module is not None:
            module.update_parameters_name(self.__dict__.get("_names_below", "") + name + ".")
        self.insert_child_to_cell(name, module)
        return self

    def extend(self, modules):
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key):
        module = self[key]
        del self[key]
        return module


class ModuleDict(nn.CellDict):
    """Reproduces torch.nn.ModuleDict exactly; values may be containers, as in torch.

    Graph mode takes a CellDict for a dict of Cells, and calls only what is none.
    """

    def __init__(self, modules=None):
        super().__init__()
        if type(self).construct is not nn.CellDict.construct:
            self.__dict__.pop("__cell_as_dict__", None)
        if modules is not None:
            self.update(modules)

    def update_parameters_name(self, prefix="", recurse=True):
        self._names_below = prefix
        super().update_parameters_name(prefix, recurse)

    def _validate_cell_type(self, cell):
        if not isinstance(cell, nn.Cell):
            raise TypeError(f"ModuleDict holds Cells, not {type(cell).__name__}")

    def _update_cell_para_name(self, key, cell):
        # torch takes any key, names of Parameters are of letters, digits and "_-." only
        plain = [c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in key]
        prefix = self.__dict__.get("_names_below", "") + "".join(plain) + "."
        cell.update_parameters_name(prefix)


def prefix_below(cell):
    """What the names of the cell's Parameters begin with: the cell's own path, where known."""
    if "_names_below" in cell.__dict__:
        return cell._names_below
    for path, parameter in cell.parameters_and_names():
        return parameter.name[: -len(path)] if parameter.name.endswith(path) else ""
    return ""


def refuse_in_graph(name, advice="keep its Parameters in a mindspore.ParameterTuple"):
    """Raises RuntimeError while a graph is compiled: items would be constants without gradient."""
    frame = sys._getframe(2)
    while frame is not None:
        place = frame.f_code
        if place.co_name == "compile" and "mindspore" in place.co_filename:
            raise RuntimeError(
                f"{name} has no gradient in graph mode: {advice}, or run in PyNative mode"
            )
        frame = frame.f_back


def add_module(cell, name, module):
    """Reproduces torch.nn.Module.add_module(name, module) for any Cell; returns None.

    In a SequentialCell the new child joins the chain, in a CellList it is one more element.
    """
    if module is not None:
        name_below(module, prefix_below(cell) + name + ".")
    cell.insert_child_to_cell(name, module)
    if isinstance(cell, nn.SequentialCell):
        relink(cell)


def name_below(module, prefix):
    """Puts a prefix before the names of a Cell's Parameters, also one that Cells refuse: with
    spaces, for example."""
    if all(letter.isalnum() or letter in "_.-" for letter in prefix):
        module.update_parameters_name(prefix)
        return
    for path, parameter in module.parameters_and_names():
        parameter.name = prefix + path


def relink(chain):
    """A SequentialCell calls the children that it has now, not those that it was built with."""
    late = len(chain._cells) - len(chain._is_dynamic_name)
    chain._is_dynamic_name.extend([False] * late)
    chain.cell_list = list(chain._cells.values())


class ParameterList(nn.Cell):
    """Reproduces torch.nn.ParameterList: Parameters by position, named "0", "1", ...

    Tensors become Parameters, as in torch. Values of other types are refused. PyNative mode only.
    """

    def __init__(self, values=None):
        super().__init__()
        for value in [] if values is None else list(values):
            self.append(value)

    def append(self, value):
        name = str(len(self))
        if isinstance(value, nn.Cell):
            self.insert_child_to_cell(name, value)
            return self
        if not isinstance(value, ms.Tensor):
            raise TypeError(f"ParameterList holds Tensors and lists, not {type(value).__name__}")
        parameter = value if isinstance(value, ms.Parameter) else ms.Parameter(value)
        parameter.name = name
        self.insert_param_to_cell(name, parameter)
        return self

    def extend(self, values):
        for value in list(values):
            self.append(value)
        return self

    def __getitem__(self, index):
        return list(self)[index]

    def __setitem__(self, index, value):
        name = str(index % len(self))
        value = value if isinstance(value, ms.Parameter) else ms.Parameter(value)
        value.name = self._params[name].name
        self._params[name] = value

    def __len__(self):
        return len(self._params) + len(self._cells)

    def __iter__(self):
        refuse_in_graph("ParameterList")
        held = {**self._params, **self._cells}
        return iter([held[str(index)] for index in range(len(held))])


class ParameterDict(nn.Cell):
    """Reproduces torch.nn.ParameterDict: Parameters by key; Tensors become Parameters.

    PyNative mode only.
    """

    def __init__(self, parameters=None):
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def update(self, parameters):
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        if isinstance(parameters, dict) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs)  # as torch does, so that their order is the same in optimizers
        for key, value in pairs:
            self[key] = value

    def __getitem__(self, key):
        refuse_in_graph("ParameterDict")
        return self._params[key]

    def __setitem__(self, key, value):
        parameter = value if isinstance(value, ms.Parameter) else ms.Parameter(value)
        parameter.name = key
        self.insert_param_to_cell(key, parameter)

    def __delitem__(self, key):
        del self._params[key]

    def __len__(self):
        return len(self._params)

    def __iter__(self):
        return iter(list(self._params))

    def __contains__(self, key):
        return key in self._params

    def get(self, key, default=None):
        return self._params.get(key, default)

    def pop(self, key):
        return self._params.pop(key)

    def keys(self):
        return self._params.keys()

    def values(self):
        refuse_in_graph("ParameterDict")
        return self._params.values()

    def items(self):
        refuse_in_graph("ParameterDict")
        return self._params.items()
