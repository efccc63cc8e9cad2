"""What an import does is not left out: each text is a file that stops there."""

EFFECTS = [
    "torch.nothing(3)",
    "x = torch.ones(3)\nhandle = x.register_hook(print)",
    "x = torch.ones(2, 2)\nd = x.diagonal()\ny = d.mul_(2)\nprint(x)",
    "x = torch.ones(2, 2)\nd = x.diagonal().mul_(2)\nprint(x)",
    "torch.nn.functional.relu = print",
    "for i in range(2):\n    torch.nothing(i)",
    "with open(__file__) as f:\n    torch.nothing(f)",
    "class A:\n    torch.nothing(3)",
    "if True: torch.nothing(3)",
    "state = torch.set_nothing(3)",
]
