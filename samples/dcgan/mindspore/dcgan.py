"""DCGAN (Radford et al., 2016): a generator and a discriminator for 64x64 images."""

import argparse

from mindspore import nn, ops
from torch_helpers import BCEWithLogitsLoss, Device, LeakyReLU, Tanh, draw_normal_, fill_

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--nz", type=int, default=100, help="size of the latent vector")
parser.add_argument("--ngf", type=int, default=64, help="width of the generator")
parser.add_argument("--ndf", type=int, default=64, help="width of the discriminator")
parser.add_argument("--nc", type=int, default=3, help="channels of the image")


def weights_init(m):
    """For Module.apply: convolutions N(0, 0.02), norms N(1, 0.02)."""
    if isinstance(m, (nn.Conv2d, nn.Conv2dTranspose)):
        draw_normal_(m.weight.data, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        draw_normal_(m.gamma.data, 1.0, 0.02)
        fill_(m.beta.data, 0)


class Generator(nn.Cell):
    def __init__(self, nz=100, ngf=64, nc=3):
        super(Generator, self).__init__()
        self.main = nn.SequentialCell(
            # input is Z, going into a convolution
            nn.Conv2dTranspose(nz, ngf * 8, 4, 1, pad_mode='pad', padding=0, has_bias=False),
            nn.BatchNorm2d(ngf * 8),
            nn.ReLU(),
            # state: (ngf*8) x 4 x 4
            nn.Conv2dTranspose(ngf * 8, ngf * 4, 4, 2, pad_mode='pad', padding=1, has_bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(),
            # state: (ngf*4) x 8 x 8
            nn.Conv2dTranspose(ngf * 4, ngf * 2, 4, 2, pad_mode='pad', padding=1, has_bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(),
            # state: (ngf*2) x 16 x 16
            nn.Conv2dTranspose(ngf * 2, ngf, 4, 2, pad_mode='pad', padding=1, has_bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(),
            # state: (ngf) x 32 x 32
            nn.Conv2dTranspose(ngf, nc, 4, 2, pad_mode='pad', padding=1, has_bias=False),
            Tanh(),
            # result: (nc) x 64 x 64
        )

    def construct(self, z):
        return self.main(z)


class Discriminator(nn.Cell):
    """One logit per image: positive means "real"."""

    def __init__(self, nc=3, ndf=64):
        super(Discriminator, self).__init__()
        layers = [
            # no norm on the first layer (section 3 of the paper)
            nn.Conv2d(nc, ndf, 4, 2, pad_mode='pad', padding=1, has_bias=False),
            LeakyReLU(0.2),
        ]
        width = ndf
        for _ in range(3):
            layers.extend([
                nn.Conv2d(width, width * 2, 4, 2, pad_mode='pad', padding=1, has_bias=False),
                nn.BatchNorm2d(width * 2),
                LeakyReLU(0.2),
            ])
            width *= 2
        layers.append(nn.Conv2d(width, 1, 4, 1, pad_mode='pad', padding=0, has_bias=False))
        self.main = nn.SequentialCell(*layers)

    def construct(self, x):
        return self.main(x).view(-1, 1).squeeze(1)


def discriminator_loss(real_logits, fake_logits, smooth=0.9):
    """Binary cross-entropy with one-sided label smoothing."""
    criterion = BCEWithLogitsLoss()
    real = criterion(real_logits, ops.full_like(real_logits, smooth))
    fake = criterion(fake_logits, ops.zeros_like(fake_logits))
    return real + fake


def main():
    opt = parser.parse_args()
    device = Device("cpu")
    netG = Generator(opt.nz, opt.ngf, opt.nc).set_train()
    netG.apply(weights_init)
    netD = Discriminator(opt.nc, opt.ndf).set_train()
    netD.apply(weights_init)

    noise = ops.randn(4, opt.nz, 1, 1)
    fake = netG(noise)
    print(f"fake images: {tuple(fake.shape)}, scores: {netD(ops.stop_gradient(fake)).tolist()}")


if __name__ == "__main__":
    main()
