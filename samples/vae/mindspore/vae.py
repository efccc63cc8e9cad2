"""A convolutional variational autoencoder (Kingma & Welling, 2014) for 32x32 images."""

from mindspore import nn, ops
from torch_helpers import ConvTranspose2d, LeakyReLU, binary_cross_entropy, randn_like


class Encoder(nn.Cell):
    """Image (N, C, 32, 32) -> mean and log-variance of the latent, each (N, latent_dim)."""

    def __init__(self, in_channels, hidden_dims, latent_dim):
        super().__init__()
        stages = []
        for dim in hidden_dims:
            stages += [
                nn.SequentialCell(
                    nn.Conv2d(in_channels, dim, kernel_size=3, stride=2, pad_mode='pad', padding=1, has_bias=True),
                    nn.BatchNorm2d(dim),
                    LeakyReLU(0.2),
                )
            ]
            in_channels = dim
        self.features = nn.SequentialCell(*stages)
        size = 32 // 2 ** len(hidden_dims)
        self.mu = nn.Dense(hidden_dims[-1] * size * size, latent_dim)
        self.log_var = nn.Dense(hidden_dims[-1] * size * size, latent_dim)

    def construct(self, x):
        h = self.features(x).flatten(start_dim=1)
        return self.mu(h), self.log_var(h)


class Decoder(nn.Cell):
    """Latent (N, latent_dim) -> image (N, C, 32, 32) with values in 0..1."""

    def __init__(self, out_channels, hidden_dims, latent_dim):
        super().__init__()
        self.size = 32 // 2 ** len(hidden_dims)
        self.channels = hidden_dims[-1]
        self.project = nn.Dense(latent_dim, self.channels * self.size ** 2)
        dims = list(hidden_dims[::-1]) + [out_channels]
        stages = []
        for i in range(len(dims) - 1):
            stages.append(
                ConvTranspose2d(dims[i], dims[i + 1], 3, stride=2, padding=1, output_padding=1)
            )
            if i < len(dims) - 2:
                stages.append(nn.BatchNorm2d(dims[i + 1]))
                stages.append(LeakyReLU(0.2))
        self.deconv = nn.SequentialCell(*stages)

    def construct(self, z):
        h = self.project(z).view(-1, self.channels, self.size, self.size)
        return ops.sigmoid(self.deconv(h))


class VAE(nn.Cell):
    def __init__(self, in_channels=3, hidden_dims=(32, 64, 128), latent_dim=64):
        super().__init__()
        self.latent_dim = latent_dim
        self.encoder = Encoder(in_channels, hidden_dims, latent_dim)
        self.decoder = Decoder(in_channels, hidden_dims, latent_dim)

    def reparameterize(self, mu, log_var):
        """Sample while training; the mean is the best single guess otherwise."""
        if not self.training:
            return mu
        std = ops.exp(0.5 * log_var)
        eps = randn_like(std)
        return mu + eps * std

    def construct(self, x):
        mu, log_var = self.encoder(x)
        z = self.reparameterize(mu, log_var)
        return self.decoder(z), mu, log_var

    def sample(self, count, device="cpu"):
        z = ops.randn(count, self.latent_dim)
        return ops.stop_gradient(self.decoder(z))


def vae_loss(recon, x, mu, log_var, beta=1.0):
    """Reconstruction plus beta times the divergence from N(0, 1), per image."""
    recon_loss = binary_cross_entropy(recon, x, reduction="sum") / x.shape[0]
    kld = -0.5 * ops.sum(1 + log_var - mu.pow(2) - log_var.exp(), dim=1).mean()
    return recon_loss + beta * kld, ops.stop_gradient(recon_loss), ops.stop_gradient(kld)
