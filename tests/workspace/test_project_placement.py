"""In: the files of projects of several shapes. Out: where helpers go, and each file's import."""

from __future__ import annotations

from migrate.syntax.source import read
from migrate.workspace.placement import Placement, place

TORCH = "import torch\n"


def placed(
    files: dict[str, str], style: str = "", foreign: tuple[str, ...] = (), root: str = ""
) -> Placement:
    sources = {path: read(path, text.encode()) for path, text in files.items()}
    return place(sources, style, foreign, root)


def test_inline_style_has_no_module() -> None:
    assert placed({"a.py": TORCH}, "inline") == Placement("", {})


def test_scripts_at_the_root_import_a_module_beside_them() -> None:
    found = placed({"a.py": TORCH, "b.py": TORCH})
    assert found.module == "torch_helpers.py"
    assert found.imports == dict.fromkeys(("a.py", "b.py"), "from torch_helpers import")


def test_one_package_holds_the_module() -> None:
    found = placed(
        {
            "pkg/__init__.py": "",
            "pkg/net.py": TORCH,
            "pkg/sub/__init__.py": "",
            "pkg/sub/deep.py": TORCH,
            "train.py": TORCH + "from pkg import net\n",
        }
    )
    assert found.module == "pkg/torch_helpers.py"
    assert found.imports == {
        "pkg/__init__.py": "from .torch_helpers import",
        "pkg/net.py": "from .torch_helpers import",
        "pkg/sub/__init__.py": "from ..torch_helpers import",
        "pkg/sub/deep.py": "from ..torch_helpers import",
        "train.py": "from pkg.torch_helpers import",
    }


def test_the_root_itself_is_the_package() -> None:
    found = placed({"__init__.py": "from .a import f\n", "a.py": TORCH, "sub/b.py": TORCH})
    assert found.module == "torch_helpers.py"
    assert found.imports["a.py"] == "from .torch_helpers import"
    assert found.imports["sub/b.py"] == "from ..torch_helpers import"


def test_the_root_is_a_package_that_imports_itself_by_its_name() -> None:
    files = {"__init__.py": "from nets.nets import Net\n", "nets.py": TORCH}
    assert placed(files, root="nets").imports["nets.py"] == "from .torch_helpers import"
    assert placed(files).imports["nets.py"] == "from torch_helpers import"


def test_a_root_with_init_whose_files_import_each_other_as_scripts() -> None:
    found = placed({"__init__.py": "", "train.py": TORCH + "import net\n", "net.py": TORCH})
    assert found.imports["net.py"] == "from torch_helpers import"


def test_a_package_in_a_source_folder() -> None:
    found = placed({"src/pkg/__init__.py": "", "src/pkg/net.py": TORCH})
    assert found.module == "src/pkg/torch_helpers.py"
    assert found.imports["src/pkg/net.py"] == "from .torch_helpers import"


def test_tests_and_packages_without_torch_do_not_count() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/net.py": TORCH,
        "tests/__init__.py": "",
        "tests/test_net.py": TORCH + "import pkg\n",
        "tools/__init__.py": "",
    }
    found = placed(files)
    assert found.module == "pkg/torch_helpers.py"
    assert found.imports["tests/test_net.py"] == "from pkg.torch_helpers import"


def test_several_packages_share_a_module_at_the_root() -> None:
    files = {
        "models/__init__.py": "",
        "models/net.py": TORCH,
        "losses/__init__.py": "",
        "losses/dice.py": TORCH,
        "train.py": TORCH,
    }
    found = placed(files)
    assert found.module == "torch_helpers.py"
    assert set(found.imports.values()) == {"from torch_helpers import"}


def test_a_script_in_a_folder_of_its_own_holds_its_helpers() -> None:
    """Run as ``python mnist/main.py``, it could not import a module from the root."""
    found = placed({"mnist/main.py": TORCH, "gan/main.py": TORCH, "README/x.py": ""})
    assert found.imports == {}
    assert "mnist/main.py" in placed({"mnist/main.py": TORCH}, "module").imports


def test_a_script_in_a_folder_that_imports_from_the_root_can_reach_it() -> None:
    found = placed({"tools/main.py": TORCH + "from net import Net\n", "net.py": TORCH})
    assert found.imports["tools/main.py"] == "from torch_helpers import"


def test_a_script_outside_that_does_not_use_the_package_holds_its_helpers() -> None:
    files = {"lib/pkg/__init__.py": "", "lib/pkg/net.py": TORCH, "tools/other.py": TORCH}
    assert "tools/other.py" not in placed(files).imports


def test_a_module_of_the_package_that_is_run_as_a_script() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/train.py": TORCH + "from pkg.net import Net\n",
        "pkg/net.py": TORCH,
    }
    assert placed(files).imports["pkg/train.py"] == "from pkg.torch_helpers import"


def test_a_file_of_that_name_is_not_replaced() -> None:
    found = placed({"a.py": TORCH}, "", ("torch_helpers.py",))
    assert found.module == "torch2ms_helpers.py"
    assert found.imports == {"a.py": "from torch2ms_helpers import"}
