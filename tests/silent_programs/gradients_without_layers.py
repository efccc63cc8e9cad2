# A backward in a file that imports no torch.nn: the Cell that is made for it needs nn.
#: script
import torch
x = torch.tensor([1.0, 2.0, 3.0])
x.requires_grad = True
def f(x):
    return (x * x).sum()
f(x).backward()
print(x.grad.tolist())
