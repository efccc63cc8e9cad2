"""DCGAN (Radford et al., 2016): a generator and a discriminator for 64x64 images."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--nz", type=int, default=100, help="size of the latent vector")
parser.add_argument("--ngf", type=int, default=64, help="width of the generator")
parser.add_argument("--ndf", type=int, default=64, help="width of the discriminator")
parser.add_argument("--nc", type=int, default=3, help="channels of the image")


def weights_init(m):
    """For Module.apply: convolutions N(0, 0.02), norms N(1, 0.02)."""
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        m.weight.data.normal_(0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


class Generator(nn.Module):
    def __init__(self, nz=100, ngf=64, nc=3):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            # input is Z, going into a convolution
            nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 8),
            nn.ReLU(True),
            # state: (ngf*8) x 4 x 4
            nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            # state: (ngf*4) x 8 x 8
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            # state: (ngf*2) x 16 x 16
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            # state: (ngf) x 32 x 32
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
            # result: (nc) x 64 x 64
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    """One logit per image: positive means "real"."""

    def __init__(self, nc=3, ndf=64):
        super(Discriminator, self).__init__()
        layers = [
            # no norm on the first layer (section 3 of the paper)
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
        ]
        width = ndf
        for _ in range(3):
            layers.extend([
                nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width * 2),
                nn.LeakyReLU(0.2, inplace=True),
            ])
            width *= 2
        layers.append(nn.Conv2d(width, 1, 4, 1, 0, bias=False))
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        return self.main(x).view(-1, 1).squeeze(1)


def discriminator_loss(real_logits, fake_logits, smooth=0.9):
    """Binary cross-entropy with one-sided label smoothing."""
    criterion = nn.BCEWithLogitsLoss()
    real = criterion(real_logits, torch.full_like(real_logits, smooth))
    fake = criterion(fake_logits, torch.zeros_like(fake_logits))
    return real + fake


def main():
    opt = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    netG = Generator(opt.nz, opt.ngf, opt.nc).to(device)
    netG.apply(weights_init)
    netD = Discriminator(opt.nc, opt.ndf).to(device)
    netD.apply(weights_init)

    noise = torch.randn(4, opt.nz, 1, 1, device=device)
    fake = netG(noise)
    print(f"fake images: {tuple(fake.shape)}, scores: {netD(fake.detach()).tolist()}")


if __name__ == "__main__":
    main()
