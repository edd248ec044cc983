"""The networks of real size on PyTorch, as bench/jobs/networks.py writes them for Trireme."""
import rivals
import torch
from torch import nn


def convolution(inputs, filters, kernel, stride=1):
    return [nn.Conv2d(inputs, filters, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(filters)]


class Block(nn.Module):
    """A block of a residual network: convolutions on the path, and a parallel 1x1 convolution where shapes
    differ."""

    def __init__(self, inputs, path, stride):
        super().__init__()
        layers, channels = [], inputs
        for number, (filters, kernel, step) in enumerate(path):
            layers += [nn.ReLU()] if number else []
            layers += convolution(channels, filters, kernel, step)
            channels = filters
        self.path = nn.Sequential(*layers)
        same = stride == 1 and channels == inputs
        self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(inputs, channels, 1, stride))

    def forward(self, x):
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet(depth):
    wide, counts = (4, [3, 4, 6, 3]) if depth == 50 else (1, [2, 2, 2, 2])
    layers, channels = [*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate(counts):
        filters = 64 << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            if wide > 1:
                path = [(filters, 1, 1), (filters, 3, stride), (filters * wide, 1, 1)]
            else:
                path = [(filters, 3, stride), (filters, 3, 1)]
            layers.append(Block(channels, path, stride))
            channels = filters * wide
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class UNet(nn.Module):
    LEVELS = (32, 64, 128)

    def __init__(self):
        super().__init__()

        def twice(inputs, filters):
            return nn.Sequential(nn.Conv2d(inputs, filters, 3, padding=1), nn.ReLU(), nn.Conv2d(filters, filters, 3, padding=1), nn.ReLU())

        self.down = nn.ModuleList(twice(i, f) for i, f in zip((3, *self.LEVELS), self.LEVELS))
        self.bottom = twice(128, 256)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * f, f, 2, 2, bias=False) for f in reversed(self.LEVELS))
        self.up = nn.ModuleList(twice(2 * f, f) for f in reversed(self.LEVELS))
        self.out = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for grow, up in zip(self.grow, self.up):
            x = up(torch.cat([grow(x), kept.pop()], 1))
        return self.out(x).flatten(1)


class Sentiment(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embedding = nn.Embedding(rivals.WORDS, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.out(self.lstm(self.embedding(tokens))[0][:, -1])
