"""python build.py small.json: builds the model of a configuration and counts its weights."""

import json
import sys

from zoo import MODELS


def build_model(config):
    return MODELS.build(config)


def count(model):
    return sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(count(build_model(json.load(file)["model"])))
