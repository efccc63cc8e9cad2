from tools.numbers import scale
