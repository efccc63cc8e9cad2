"""A convolutional variational autoencoder (Kingma & Welling, 2014) for 32x32 images."""

import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    """Image (N, C, 32, 32) -> mean and log-variance of the latent, each (N, latent_dim)."""

    def __init__(self, in_channels, hidden_dims, latent_dim):
        super().__init__()
        stages = []
        for dim in hidden_dims:
            stages += [
                nn.Sequential(
                    nn.Conv2d(in_channels, dim, kernel_size=3, stride=2, padding=1),
                    nn.BatchNorm2d(dim),
                    nn.LeakyReLU(0.2),
                )
            ]
            in_channels = dim
        self.features = nn.Sequential(*stages)
        size = 32 // 2 ** len(hidden_dims)
        self.mu = nn.Linear(hidden_dims[-1] * size * size, latent_dim)
        self.log_var = nn.Linear(hidden_dims[-1] * size * size, latent_dim)

    def forward(self, x):
        h = self.features(x).flatten(start_dim=1)
        return self.mu(h), self.log_var(h)


class Decoder(nn.Module):
    """Latent (N, latent_dim) -> image (N, C, 32, 32) with values in 0..1."""

    def __init__(self, out_channels, hidden_dims, latent_dim):
        super().__init__()
        self.size = 32 // 2 ** len(hidden_dims)
        self.channels = hidden_dims[-1]
        self.project = nn.Linear(latent_dim, self.channels * self.size ** 2)
        dims = list(reversed(hidden_dims)) + [out_channels]
        stages = []
        for i in range(len(dims) - 1):
            stages.append(
                nn.ConvTranspose2d(dims[i], dims[i + 1], 3, stride=2, padding=1, output_padding=1)
            )
            if i < len(dims) - 2:
                stages.append(nn.BatchNorm2d(dims[i + 1]))
                stages.append(nn.LeakyReLU(0.2))
        self.deconv = nn.Sequential(*stages)

    def forward(self, z):
        h = self.project(z).view(-1, self.channels, self.size, self.size)
        return torch.sigmoid(self.deconv(h))


class VAE(nn.Module):
    def __init__(self, in_channels=3, hidden_dims=(32, 64, 128), latent_dim=64):
        super().__init__()
        self.latent_dim = latent_dim
        self.encoder = Encoder(in_channels, hidden_dims, latent_dim)
        self.decoder = Decoder(in_channels, hidden_dims, latent_dim)

    def reparameterize(self, mu, log_var):
        """Sample while training; the mean is the best single guess otherwise."""
        if not self.training:
            return mu
        std = torch.exp(0.5 * log_var)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, log_var = self.encoder(x)
        z = self.reparameterize(mu, log_var)
        return self.decoder(z), mu, log_var

    def sample(self, count, device="cpu"):
        with torch.no_grad():
            z = torch.randn(count, self.latent_dim, device=device)
            return self.decoder(z)


def vae_loss(recon, x, mu, log_var, beta=1.0):
    """Reconstruction plus beta times the divergence from N(0, 1), per image."""
    recon_loss = F.binary_cross_entropy(recon, x, reduction="sum") / x.size(0)
    kld = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp(), dim=1).mean()
    return recon_loss + beta * kld, recon_loss.detach(), kld.detach()
