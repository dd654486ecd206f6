"""Image classifiers, which read images as sequences of pixels: a residual network and a linear model of colours."""

from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn.functional import relu

from plumbline.data.pixels import side_length
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output
from plumbline.registry import model

# Mean and standard deviation of ImageNet's red, green and blue, on the scale from 0 to 1.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Colours(nn.Module):
    """Normalised value of each byte in each channel, as `weight` [256, 3]: (b / 255 - mean) / deviation."""

    # Padding is a black pixel; the attribute is that of torch.nn.Embedding.
    padding_idx = 0
    # Its weights are constants.
    learned = False

    def __init__(self) -> None:
        super().__init__()
        share = torch.arange(256)[:, None] / 255
        self.weight = nn.Parameter((share - torch.tensor(MEAN)) / torch.tensor(DEVIATION), requires_grad=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors [B, T, 3] of pixels [B, T]. Training never changes them, even if `requires_grad` is set."""
        weight = self.weight.detach() if self.training else self.weight
        channels = [weight[:, channel][(ids >> shift) & 255] for channel, shift in enumerate((16, 8, 0))]
        return torch.stack(channels, dim=-1)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with a residual connection (He et al. 2016); `stride` downsamples."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or before != width:
            self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        residual = self.second_norm(self.second(relu(self.first_norm(self.first(maps)))))
        return relu(residual + self.shortcut(maps))


def _stem(kind: str, width: int) -> nn.Sequential:
    """The first layer: 7 x 7 pixels, downsampling by 4 with its pooling, or 3 x 3 pixels, downsampling by 2."""
    size = 7 if kind == "7x7" else 3
    layers = [nn.Conv2d(3, width, size, 2, padding=size // 2, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(3, 2, padding=1)] if kind == "7x7" else []))


@model("resnet-small", stem="3x3", width=16, blocks="1-1-1-1")
@model(
    "resnet34",
    citation="He, Zhang, Ren & Sun (2016), Deep Residual Learning for Image Recognition. CVPR.",
    provides=["gradient", "pixels", "maps"],
    tasks=["image classification"],
    reads="pixels",
    training={
        "epochs": 50,
        "batch_size": 128,
        "optimiser": "adam",
        "learning_rate": 1e-3,
        "schedule": "plateau",
        "plateau_patience": 30,
        "plateau_factor": 0.1,
        "weight_decay": 0.0,
        "no_decay": [],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "shuffle",
        "select_by": "accuracy",
        "first_eligible_epoch": 1,
        "stop_at": 0.97,
        "checkpoint_gain": 0.05,
    },
)
class ResNet(nn.Module):
    """A residual network of basic blocks (He et al. 2016), trained from scratch as in Zhou et al. 2022.

    Each of four stages halves the resolution and doubles the number of feature maps. The output is linear in the means
    of the last feature maps, one logit per class.

    Options:
        stem: First layer: `7x7` pixels, which reduces the side by 4, or `3x3`, which reduces it by 2.
        width: Feature maps of the first stage.
        blocks: Residual blocks of each of the four stages.
    """

    # A pixel has only three values, so that larger passes are still faster (measured on an H200).
    useful_tokens: ClassVar[dict[str, int]] = {"cpu": 65536, "cuda": 4194304}

    def __init__(
        self,
        embedding: torch.Tensor | None,
        classes: int,
        *,
        stem: Literal["7x7", "3x3"] = "7x7",
        width: int = 64,
        blocks: Literal["3-4-6-3", "2-2-2-2", "1-1-1-1"] = "3-4-6-3",
    ) -> None:
        super().__init__()
        self.embedding = Colours()
        self.stem = _stem(stem, width)
        # The downsampling factor from the image to the last feature maps.
        self.shrink = 32 if stem == "7x7" else 16
        stages, before = [], width
        for stage, count in enumerate(map(int, blocks.split("-"))):
            after = width * 2**stage
            strides = [2 if stage else 1] + [1] * (count - 1)
            stages += [BasicBlock(before if not i else after, after, stride) for i, stride in enumerate(strides)]
            before = after
        self.blocks = nn.Sequential(*stages)
        self.linear = nn.Linear(before, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def maps(self, batch: Batch, embedded: torch.Tensor | None = None) -> torch.Tensor:
        """The non-negative feature maps [B, K, h, w] of the last block."""
        vectors = self.embedding(batch.ids) if embedded is None else embedded
        height = side_length(vectors.shape[1])
        if self.training and len(vectors) == 1 and height <= self.shrink:
            raise PlumblineError(
                f"A batch of one image of {height} x {height} pixels has one value per last feature map, which batch "
                "normalisation cannot train on; choose a `batch_size` that leaves no batch of one image, or larger "
                "images."
            )
        # Channels-last memory format, in which GPUs convolve fastest; all feature maps inherit it.
        images = vectors.unflatten(1, (height, height)).permute(0, 3, 1, 2)
        return self.blocks(self.stem(images))

    @property
    def readout_weights(self) -> torch.Tensor:
        """The weights [C, K] of the output for the means of the last feature maps."""
        return self.linear.weight

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        return Output(self.linear(self.maps(batch, embedded).mean(dim=(2, 3))))


@model(
    "linear-pixels",
    provides=["gradient", "pixels"],
    tasks=["image classification"],
    reads="pixels",
    training={
        "epochs": 50,
        "batch_size": 128,
        "optimiser": "adam",
        "weight_decay": 0.0,
        "no_decay": [],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "shuffle",
        "select_by": "accuracy",
        "first_eligible_epoch": 1,
    },
)
class LinearPixels(nn.Module):
    """A linear layer over the colours of all pixels, with a known explanation: each pixel's term of the output.

    Options:
        side: Width and height of the images, in pixels.
    """

    def __init__(self, embedding: torch.Tensor | None, classes: int, *, side: int = 64) -> None:
        super().__init__()
        if side < 1:
            raise PlumblineError(f"`side` is {side}; it must be at least 1.")
        self.embedding = Colours()
        self.side = side
        self.linear = nn.Linear(3 * side**2, classes)

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        vectors = self.embedding(batch.ids) if embedded is None else embedded
        if vectors.shape[1] != self.side**2:
            side = side_length(vectors.shape[1])
            raise PlumblineError(
                f"The model linear-pixels reads images of {self.side} x {self.side} pixels, but these have {side} x "
                f"{side}; set its option `side` to {side}."
            )
        return Output(self.linear(vectors.flatten(1)))
