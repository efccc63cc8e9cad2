"""In: a file or folder. Out: what a conversion of it would do and what it would leave to people.

Nothing is written: the same planner decides as in ``convert``, and its record is counted.
"""

from migrate.scan.assess import Assessment, assess
from migrate.scan.render import FORMATS, render

__all__ = ["FORMATS", "Assessment", "assess", "render"]
