# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

from mindspore import nn


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
