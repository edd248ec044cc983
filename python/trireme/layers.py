"""The layers as functions, and whole models of them.

    from trireme import layers

    net = [layers.dense(64, activation="relu"), layers.dropout(0.2), layers.dense(10)]
    run = trireme.train(layers.model(net, optimizer={"rule": "adam", "rate": 1e-3}), x, y)

Each function gives an item of `layers:` of the model file. What is left out takes the default of the program, which also
checks ranges and shapes. Every layer takes these beside its own:

    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

Made by tools/layers.py from the option tables of the program; not edited.
"""

# mypy: warn_unused_ignores = False
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from ._layer import Layer, make, model

#: Initial values: a number, a name ("he_normal"), or a name with its options ({"normal": {"deviation": 0.1}}).
Initializer = Union[float, str, Mapping[str, Any]]

__all__ = [
    "Initializer",
    "Layer",
    "add",
    "attention",
    "average_pool",
    "batch_norm",
    "bidirectional",
    "concat",
    "conv",
    "conv1d",
    "conv_transpose",
    "cross_attention",
    "dense",
    "dropout",
    "embedding",
    "first",
    "flatten",
    "gelu",
    "global_average_pool",
    "global_max_pool",
    "group_norm",
    "gru",
    "hard_swish",
    "instance_norm",
    "last",
    "layer_norm",
    "leaky_relu",
    "lstm",
    "max_pool",
    "model",
    "multiply",
    "position",
    "relu",
    "relu6",
    "reshape",
    "rms_norm",
    "sigmoid",
    "silu",
    "slice",
    "softmax",
    "stochastic_depth",
    "tanh",
    "tokens",
    "unembedding",
    "upsample",
]


def add(
    with_: str | Sequence[str] | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """The sum of several outputs, for instance a residual connection.

    Parameters
    ----------
    with_ : str or sequence of str
        layers whose outputs are added to the previous layer's output; or give `from`
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("add", locals())


def attention(
    heads: int,
    *,
    width: int | None = None,
    causal: bool | None = None,
    dropout: float | None = None,
    rotary: float | None = None,
    use_bias: bool | None = None,
    weights: Initializer | None = None,
    output_weights: Initializer | None = None,
    kv_heads: int | None = None,
    window: int | None = None,
    rotary_style: Literal["halves", "pairs"] | None = None,
    rotary_factor: float | None = None,
    rotary_original: float | None = None,
    rotary_low: float | None = None,
    rotary_high: float | None = None,
    use_output_bias: bool | None = None,
    context: int | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Multi-head self-attention over the tokens of each example.

    Parameters
    ----------
    heads : int, 1 .. 65536
        number of heads: parts of the vectors that attend separately
    width : int, 0 .. 1048576, default 0
        width of queries, keys and values, all heads together; 0: that of the input
    causal : bool, default False
        a token sees itself and earlier tokens, not later ones
    dropout : float, 0 .. 0.9999, default 0
        fraction of the attention weights that are dropped in training
    rotary : float, >= 0, default 0
        base of rotary positions (Su et al. 2021), usually 10000; 0: none. `rotary_style` says which numbers turn
        together
    use_bias : bool, default True
        add biases to the projections
    weights : initializer, default glorot_uniform
        initializer of the projection to queries, keys and values
    output_weights : initializer, default glorot_uniform
        initializer of the output projection
    kv_heads : int, 0 .. 65536, default 0
        heads of keys and values, each shared by `heads` / `kv_heads` neighbouring heads of queries (grouped-query
        attention, Ainslie et al. 2023); 0: `heads`
    window : int, >= 0, default 0
        a token sees tokens less than this number of places away, itself included; 0: all
    rotary_style : {"halves", "pairs"}, default halves
        which numbers of a head turn together. `halves`: number k of a head turns with number k + half of its size, as
        in Llama and GPT-NeoX; `pairs`: number 2k turns with number 2k + 1, as in the paper and in GPT-J
    rotary_factor : float, >= 1, default 1
        divides positions, so that longer texts stay within the angles of the first training
    rotary_original : float, >= 0, default 0
        length of texts in the first training, as in Llama 3: `rotary_factor` divides positions only for numbers that
        turn less than `rotary_low` times over this length, in part up to `rotary_high` times; 0: for all
    rotary_low : float, > 0, default 1
        turns, see `rotary_original`
    rotary_high : float, > 0, default 4
        turns, see `rotary_original`; more than `rotary_low`
    use_output_bias : bool, default True
        with `use_bias`, also to the output projection; Qwen2 does not
    context : int, >= 0, default 0
        greatest number of tokens that `generate` shows the network; 0: no limit
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("attention", locals())


def average_pool(
    size: int | Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] | None = None,
    padding: Literal["valid", "same"] | None = None,
    pad: int | Sequence[int] | None = None,
    count_border: bool | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Mean of each window.

    Parameters
    ----------
    size : int or sequence of two int, 1 .. 16, default 2
        height and width of a window
    stride : int or sequence of two int, 0 .. 1024, default 0
        distance of neighbouring windows; 0: their size
    padding : {"valid", "same"}, default valid
        valid, or same: as many outputs as inputs / stride
    pad : int or sequence of two int, -1 .. 15, default -1
        rows and columns on every side, instead of padding
    count_border : bool, default False
        count the border as zeros: every mean is over the whole window, as with PyTorch's `count_include_pad`; otherwise
        over the part inside the image
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("average_pool", locals())


def batch_norm(
    epsilon: float | None = None,
    *,
    momentum: float | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Normalizes each channel over the examples of a microbatch (train.microbatches).

    Parameters
    ----------
    epsilon : float, > 0 and <= 1, default 1e-5
        added to the variance
    momentum : float, 0 .. 1, default 0.1
        fraction of a new batch in the running statistics, which change once a step by the mean of the microbatches'
        means and unbiased variances
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("batch_norm", locals())


def bidirectional(
    units: int,
    *,
    cell: Literal["lstm", "gru"] | None = None,
    weights: Initializer | None = None,
    recurrent_weights: Initializer | None = None,
    bias: Initializer | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """A recurrent layer in both directions; gives both hidden states for every token.

    Parameters
    ----------
    units : int, 1 .. 32768
        size of the hidden state of each direction; the output is twice as wide
    cell : {"lstm", "gru"}, default lstm
        the layer of both directions
    weights : initializer, default glorot_uniform
        initializer of the input weights
    recurrent_weights : initializer, default glorot_uniform
        initializer of the recurrent weights
    bias : initializer, default 0
        initializer of the biases
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("bidirectional", locals())


def concat(
    with_: str | Sequence[str] | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Several outputs one after another; images along their channels.

    Parameters
    ----------
    with_ : str or sequence of str
        layers whose outputs are appended to the previous layer's output; or give `from`
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("concat", locals())


def conv(
    filters: int,
    kernel: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    padding: Literal["valid", "same"] | None = None,
    pad: int | Sequence[int] | None = None,
    groups: int | None = None,
    algorithm: Literal["auto", "direct", "winograd"] | None = None,
    activation: Literal["none", "relu", "leaky_relu", "tanh", "sigmoid"] | None = None,
    slope: float | None = None,
    weights: Initializer | None = None,
    bias: Initializer | None = None,
    use_bias: bool | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Two-dimensional convolution over height x width x channels.

    Parameters
    ----------
    filters : int, 1 .. 1048576
        number of output channels
    kernel : int or sequence of two int, 1 .. 1024
        height and width
    stride : int or sequence of two int, 1 .. 1024, default 1
        distance of neighbouring windows
    dilation : int or sequence of two int, 1 .. 1024, default 1
        distance of neighbouring taps
    padding : {"valid", "same"}, default valid
        valid, or same: as many outputs as inputs / stride
    pad : int or sequence of two int, -1 .. 1024, default -1
        rows and columns on every side, instead of padding
    groups : int, 1 .. 1048576, default 1
        groups of channels; an output reads the channels of its own group only; as many groups as channels: depthwise
    algorithm : {"auto", "direct", "winograd"}, default auto
        algorithm, which changes rounding: winograd has a quarter of the products of a 3x3 kernel, 36 % of those of 5x5;
        auto takes it if kernel, channels and outputs suit it, else direct
    activation : {"none", "relu", "leaky_relu", "tanh", "sigmoid"}, default none
        applied to the output
    slope : float, > 0 and <= 1, default 0.01
        slope of leaky_relu for negative inputs
    weights : initializer, default glorot_uniform
        initializer of the weights
    bias : initializer, default 0
        initializer of the bias
    use_bias : bool, default True
        add a bias to each output
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("conv", locals())


def conv1d(
    filters: int,
    kernel: int,
    *,
    causal: bool | None = None,
    groups: int | None = None,
    activation: Literal["none", "relu", "leaky_relu", "tanh", "sigmoid"] | None = None,
    slope: float | None = None,
    weights: Initializer | None = None,
    bias: Initializer | None = None,
    use_bias: bool | None = None,
    dilation: int | None = None,
    stride: int | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Convolution over the tokens of each example.

    Parameters
    ----------
    filters : int, 1 .. 1048576
        number of output channels
    kernel : int, 1 .. 1024
        tokens seen by an output
    causal : bool, default False
        an output sees its own token and earlier ones, instead of as many on both sides
    groups : int, 1 .. 1048576, default 1
        groups of channels; an output reads the channels of its own group only; as many groups as channels: depthwise
    activation : {"none", "relu", "leaky_relu", "tanh", "sigmoid"}, default none
        applied to the output
    slope : float, > 0 and <= 1, default 0.01
        slope of leaky_relu for negative inputs
    weights : initializer, default glorot_uniform
        initializer of the weights
    bias : initializer, default 0
        initializer of the bias
    use_bias : bool, default True
        add a bias to each output
    dilation : int, 1 .. 65536, default 1
        distance of neighbouring taps; with 2 an output sees every other token
    stride : int, 1 .. 65536, default 1
        distance of neighbouring outputs; with 2 there is one for every other token. Only for sequences of one length,
        such as windows of time series
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("conv1d", locals())


def conv_transpose(
    filters: int,
    kernel: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Literal["valid", "same"] | None = None,
    pad: int | Sequence[int] | None = None,
    groups: int | None = None,
    weights: Initializer | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Transposed convolution, which enlarges images; without bias.

    Parameters
    ----------
    filters : int, 1 .. 1048576
        number of output channels
    kernel : int or sequence of two int, 1 .. 1024
        height and width
    stride : int or sequence of two int, 1 .. 1024, default 1
        distance of neighbouring windows in the output: the factor of enlargement
    padding : {"valid", "same"}, default valid
        valid: (input - 1) * stride + kernel rows and columns, or same: input * stride
    pad : int or sequence of two int, -1 .. 1024, default -1
        rows and columns removed on every side of the valid output, instead of padding
    groups : int, 1 .. 1048576, default 1
        groups of channels; an output reads the channels of its own group only; as many groups as channels: depthwise
    weights : initializer, default glorot_uniform
        initializer of the weights
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("conv_transpose", locals())


def cross_attention(
    heads: int,
    *,
    with_: str | Sequence[str] | None = None,
    width: int | None = None,
    kv_heads: int | None = None,
    dropout: float | None = None,
    use_bias: bool | None = None,
    weights: Initializer | None = None,
    memory_weights: Initializer | None = None,
    output_weights: Initializer | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Multi-head attention of the tokens of one layer to those of another.

    Parameters
    ----------
    heads : int, 1 .. 65536
        number of heads: parts of the vectors that attend separately
    with_ : str or sequence of str
        the memory: the layer whose tokens those of the previous layer attend to; or give `from`
    width : int, 0 .. 1048576, default 0
        width of queries, all heads together; 0: that of the first input
    kv_heads : int, 0 .. 65536, default 0
        heads of keys and values, each shared by `heads` / `kv_heads` neighbouring heads of queries; 0: `heads`
    dropout : float, 0 .. 0.9999, default 0
        fraction of the attention weights that are dropped in training
    use_bias : bool, default True
        add biases to the projections
    weights : initializer, default glorot_uniform
        initializer of the projection to queries
    memory_weights : initializer, default glorot_uniform
        initializer of the projection of the memory to keys and values
    output_weights : initializer, default glorot_uniform
        initializer of the output projection
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("cross_attention", locals())


def dense(
    units: int,
    *,
    activation: Literal["none", "relu", "leaky_relu", "tanh", "sigmoid"] | None = None,
    slope: float | None = None,
    weights: Initializer | None = None,
    bias: Initializer | None = None,
    use_bias: bool | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Fully connected layer; images are flattened.

    Parameters
    ----------
    units : int, 1 .. 268435456
        number of outputs
    activation : {"none", "relu", "leaky_relu", "tanh", "sigmoid"}, default none
        applied to the output
    slope : float, > 0 and <= 1, default 0.01
        slope of leaky_relu for negative inputs
    weights : initializer, default glorot_uniform
        initializer of the weights
    bias : initializer, default 0
        initializer of the bias
    use_bias : bool, default True
        add a bias to each output
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("dense", locals())


def dropout(
    rate: float,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Drops a fraction of the values in training.

    Parameters
    ----------
    rate : float, 0 .. 0.9999
        fraction of the values that are dropped
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("dropout", locals())


def embedding(
    width: int,
    *,
    vocabulary: int | None = None,
    weights: Initializer | None = None,
    vectors: str | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """A learned vector for each token.

    Parameters
    ----------
    width : int, 1 .. 1048576
        size of a vector
    vocabulary : int, 0 .. 268435456, default 0
        number of vectors; 0: the vocabulary of the data
    weights : initializer, default {uniform: 0.05}
        initializer of the vectors
    vectors : str
        file of initial vectors: a word and its numbers on each line, or an array .npy with a row for each token
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("embedding", locals())


def first(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """The first token's vector of each sequence.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("first", locals())


def flatten(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Height x width x channels as one vector.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("flatten", locals())


def gelu(
    approximate: Literal["none", "tanh"] | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """X times the normal distribution function of x (Hendrycks, Gimpel 2016).

    Parameters
    ----------
    approximate : {"none", "tanh"}, default none
        how the distribution function is computed. `none`: by the error function; `tanh`: by the hyperbolic tangent, as
        in GPT-2
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("gelu", locals())


def global_average_pool(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Mean of each channel over an image, or over the tokens of a sequence.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("global_average_pool", locals())


def global_max_pool(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Greatest value of each channel over an image, or over the tokens of a sequence.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("global_max_pool", locals())


def group_norm(
    groups: int,
    *,
    epsilon: float | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Normalizes groups of channels of each example, or each token.

    Parameters
    ----------
    groups : int, 1 .. 1048576
        number of groups of neighbouring channels; it divides the channels
    epsilon : float, > 0 and <= 1, default 1e-5
        added to the variance
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("group_norm", locals())


def gru(
    units: int,
    *,
    weights: Initializer | None = None,
    recurrent_weights: Initializer | None = None,
    bias: Initializer | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Gated recurrent unit; gives its hidden state for every token.

    Parameters
    ----------
    units : int, 1 .. 65536
        size of the hidden state
    weights : initializer, default glorot_uniform
        initializer of the input weights
    recurrent_weights : initializer, default glorot_uniform
        initializer of the recurrent weights
    bias : initializer, default 0
        initializer of both biases
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("gru", locals())


def hard_swish(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """X times a straight line from 0 at -3 to 1 at 3, near silu (Howard et al. 2019).

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("hard_swish", locals())


def instance_norm(
    epsilon: float | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Normalizes each channel of each image.

    Parameters
    ----------
    epsilon : float, > 0 and <= 1, default 1e-5
        added to the variance
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("instance_norm", locals())


def last(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """The last token's vector of each sequence.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("last", locals())


def layer_norm(
    epsilon: float | None = None,
    *,
    per: Literal["example", "pixel"] | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Normalizes each example, each token, or each pixel of an image.

    Parameters
    ----------
    epsilon : float, > 0 and <= 1, default 1e-5
        added to the variance
    per : {"example", "pixel"}, default example
        what is normalized together. `example`: all numbers of an example, or of a token; `pixel`: the channels of each
        pixel of an image, with a gain for each channel
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("layer_norm", locals())


def leaky_relu(
    slope: float | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Slope * x for negative inputs.

    Parameters
    ----------
    slope : float, > 0 and <= 1, default 0.01
        factor for negative inputs
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("leaky_relu", locals())


def lstm(
    units: int,
    *,
    truncate: int | None = None,
    weights: Initializer | None = None,
    recurrent_weights: Initializer | None = None,
    bias: Initializer | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Long short-term memory; gives its hidden state for every token.

    Parameters
    ----------
    units : int, 1 .. 65536
        size of the hidden state
    truncate : int, 0 .. 1048576, default 0
        tokens after which backpropagation through time is cut; 0: never
    weights : initializer, default glorot_uniform
        initializer of the input weights
    recurrent_weights : initializer, default glorot_uniform
        initializer of the recurrent weights
    bias : initializer, default 0
        initializer of the bias
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("lstm", locals())


def max_pool(
    size: int | Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] | None = None,
    padding: Literal["valid", "same"] | None = None,
    pad: int | Sequence[int] | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Greatest value of each window.

    Parameters
    ----------
    size : int or sequence of two int, 1 .. 16, default 2
        height and width of a window
    stride : int or sequence of two int, 0 .. 1024, default 0
        distance of neighbouring windows; 0: their size
    padding : {"valid", "same"}, default valid
        valid, or same: as many outputs as inputs / stride
    pad : int or sequence of two int, -1 .. 15, default -1
        rows and columns on every side, instead of padding
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("max_pool", locals())


def multiply(
    with_: str | Sequence[str] | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """The product of two layers' outputs; of an image and a factor for each channel.

    Parameters
    ----------
    with_ : str or sequence of str
        the layer by whose output the previous layer's output is multiplied; or give `from`
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("multiply", locals())


def position(
    length: int,
    *,
    weights: Initializer | None = None,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Adds a learned vector for the position of each token.

    Parameters
    ----------
    length : int, 1 .. 16777216
        number of vectors, usually the tokens of the longest example; later tokens share the last one
    weights : initializer, default {uniform: 0.05}
        initializer of the vectors
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("position", locals())


def relu(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """0 for negative inputs.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("relu", locals())


def relu6(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """0 for negative inputs, 6 for those above 6.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("relu6", locals())


def reshape(
    shape: int | Sequence[int],
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """A vector as an image.

    Parameters
    ----------
    shape : int or sequence of int, 1 .. 16777216
        height, width, channels
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("reshape", locals())


def rms_norm(
    epsilon: float | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Divides each example, or each token, by its root mean square.

    Parameters
    ----------
    epsilon : float, > 0 and <= 1, default 1e-5
        added to the mean square
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("rms_norm", locals())


def sigmoid(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """1 / (1 + exp(-x)).

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("sigmoid", locals())


def silu(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """X * sigmoid(x) (Hendrycks, Gimpel 2016; also called swish).

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("silu", locals())


def slice(
    begin: int,
    size: int,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Some of the numbers of a vector.

    Parameters
    ----------
    begin : int, >= 0
        index of the first number, from 0
    size : int, >= 1
        how many
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("slice", locals())


def softmax(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Probabilities from scores; not before a softmax_cross_entropy loss, which contains it.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("softmax", locals())


def stochastic_depth(
    rate: float,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Leaves out a branch for a fraction of the examples in training.

    Parameters
    ----------
    rate : float, 0 .. 0.9999
        fraction of the examples whose values become 0
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("stochastic_depth", locals())


def tanh(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Hyperbolic tangent.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("tanh", locals())


def tokens(
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """An image as a sequence of its pixels, row by row; the channels are the vector of a pixel.

    Parameters
    ----------
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("tokens", locals())


def unembedding(
    embedding: str,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Scores of all tokens with the vectors of an embedding, whose weights it shares.

    Parameters
    ----------
    embedding : str
        name of the embedding whose vectors it shares
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("unembedding", locals())


def upsample(
    size: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
    from_: str | Sequence[str] | None = None,
    frozen: bool | None = None,
    rate_factor: float | None = None,
    decay_factor: float | None = None,
    share: str | None = None,
) -> Layer:
    """Every pixel of an image several times (nearest neighbour).

    Parameters
    ----------
    size : int or sequence of two int, 1 .. 8, default 2
        repetitions of each row and each column
    name : str
        name of the layer; default: the kind and a number (`conv1`)
    from_ : str or sequence of str
        names of the layers that give its input; default: the previous layer; `input` is the network's input
    frozen : bool, default False
        do not train the layer's parameters; running statistics of a `batch_norm` follow the data
    rate_factor : float, >= 0, default 1
        factor on the learning rate of the layer's parameters
    decay_factor : float, >= 0, default 1
        factor on `l2` and `weight_decay` of the layer's parameters
    share : str
        name of an earlier layer of this kind whose parameters this layer uses; the gradients of all uses are added

    Returns
    -------
    Layer
        an item of `layers:`
    """
    return make("upsample", locals())
