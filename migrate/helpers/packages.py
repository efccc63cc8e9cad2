"""Answer questions about installed packages in a program where MindSpore takes torch's place."""

import re
from importlib import metadata, util
from pathlib import Path


def stands_on_torch(name, origin):
    """Whether a package at this place is one whose distribution asks for torch."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    needs = [r for r in found.requires or () if "extra ==" not in r]
    asked = any(re.split(r"[^\w-]", r, maxsplit=1)[0] == "torch" for r in needs)
    return asked and Path(str(found.locate_file(""))).resolve() in Path(origin).resolve().parents


def find_package(name, package=None):
    """importlib.util.find_spec: torch is there, as MindSpore; what needs torch itself is not."""
    root = name.partition(".")[0]
    if root == "torch":
        return util.find_spec("mindspore")
    try:
        found = util.find_spec(name, package)
    except ModuleNotFoundError:
        if root != name:
            raise
        return None  # an import hook refuses the package
    gone = found is not None and found.origin and stands_on_torch(root, found.origin)
    return None if gone else found


def package_version(distribution_name):
    """importlib.metadata.version: torch's is the version whose behaviour the program reproduces."""
    if distribution_name == "torch":
        return "2.13.0"
    return metadata.version(distribution_name)
