#include "support/networks.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"
#include "base/numbers/tree.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 11

const struct network networks[] = {
    {"images", "8x7x2", 0,
     "layers:\n"
     "- conv: {filters: 4, kernel: 3, padding: same, activation: relu}\n"
     "- max_pool: {size: 2, padding: same}\n"
     "- conv: {filters: 3, kernel: [2, 3], stride: [1, 2], pad: 1, activation: leaky_relu, slope: 0.2}\n"
     "- average_pool: {size: 2, stride: 1, padding: same}\n"
     "- flatten\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 3\n"},
    {"convolutions by Winograd's algorithm", "7x9x2", 0,
     "layers:\n"
     "- conv: {filters: 5, kernel: 3, padding: same, algorithm: winograd, activation: relu}\n"
     "- conv: {filters: 3, kernel: 3, algorithm: winograd, use_bias: false}\n"
     "- batch_norm\n"
     "- conv: {filters: 4, kernel: 3, pad: 2, algorithm: winograd, activation: tanh}\n"
     "- dense: 3\n"},
    {"convolutions of 5x5 by Winograd's algorithm", "7x9x2", 0,
     "layers:\n"
     "- conv: {filters: 5, kernel: 5, padding: same, algorithm: winograd, activation: relu}\n"
     "- conv: {filters: 3, kernel: 5, pad: 4, algorithm: winograd, use_bias: false}\n"
     "- batch_norm\n"
     "- conv: {filters: 4, kernel: 5, algorithm: winograd, activation: tanh}\n"
     "- dense: 3\n"},
    {"images that become larger", "3x4x2", 0,
     "layers:\n"
     "- conv_transpose: {filters: 3, kernel: [3, 2], stride: 2}\n"
     "- tanh\n"
     "- upsample: [2, 3]\n"
     "- conv_transpose: {filters: 2, kernel: 3, pad: 1}\n"
     "- sigmoid\n"
     "- max_pool: 2\n"
     "- upsample: [1, 2]\n"
     "- conv_transpose: {filters: 2, kernel: 4, stride: [3, 5], padding: same}\n"
     "- tanh\n"
     "- average_pool: {size: [3, 5]}\n"
     "- upsample: [2, 1]\n"
     "- conv: {filters: 2, kernel: 2}\n"
     "- dense: 3\n"},
    {"convolutions with pools of their own", "7x6x1", 0,
     "layers:\n"
     "- conv: {filters: 3, kernel: 3, padding: same, activation: relu}\n"
     "- max_pool: 2\n"
     "- conv: {filters: 2, kernel: 2, use_bias: false}\n"
     "- max_pool: [1, 2]\n"
     "- dense: 3\n"},
    {"dilated convolution of few channels", "6x6x1", 0,
     "layers:\n"
     "- conv: {filters: 2, kernel: 2, dilation: 2, use_bias: false}\n"
     "- tanh\n"
     "- conv: {filters: 3, kernel: 3, activation: sigmoid}\n"
     "- flatten\n"},
    {"relu before a pool that has it alone", "5x5x2", 0,
     "layers:\n"
     "- dropout: 0.2\n"
     "- conv: {filters: 3, kernel: 2}\n"
     "- relu\n"
     "- max_pool: 2\n"
     "- dense: 3\n"},
    {"relu before a pool and another", "4x4x2", 0,
     "layers:\n"
     "- conv: {filters: 2, kernel: 1, activation: relu, name: a}\n"
     "- max_pool: {size: 2, stride: 1, padding: same}\n"
     "- add: a\n"
     "- max_pool: {size: 3, stride: 2, pad: 1}\n"
     "- dense: 2\n"},
    {"residual", "6", 0,
     "layers:\n"
     "- dense: {units: 6, activation: tanh, name: a}\n"
     "- dense: {units: 6, name: b}\n"
     "- add: {with: a, name: s}\n"
     "- gelu\n"
     "- add: {with: a, name: t}\n"
     "- dense: {units: 6, activation: sigmoid}\n"
     "- add: s\n"
     "- add: b\n"
     "- dense: 3\n"},
    {"sums of a layer with itself and through a flatten", "2x3x1", 0,
     "layers:\n"
     "- dense: {units: 4, name: a}\n"
     "- add: a\n"
     "- flatten: {name: f}\n"
     "- tanh\n"
     "- add: f\n"
     "- add: a\n"
     "- dense: 2\n"},
    {"a layer with itself alone", "5", 0,
     "layers:\n"
     "- dense: {units: 3, name: a}\n"
     "- add: a\n"
     "- sigmoid\n"
     "- dense: 2\n"},
    {"batch norm", "4x4x2", 0,
     "layers:\n"
     "- batch_norm: 0.1\n"
     "- tanh\n"
     "- conv: {filters: 3, kernel: 2, use_bias: false}\n"
     "- batch_norm\n"
     "- relu\n"
     "- max_pool: {size: 2, stride: 1}\n"
     "- dense: {units: 4, use_bias: false}\n"
     "- batch_norm: 0.05\n"
     "- sigmoid\n"
     "- dense: 3\n"},
    {"residual blocks with batch norm", "6x6x2", 0,
     "layers:\n"
     "- conv: {filters: 3, kernel: 3, padding: same, use_bias: false}\n"
     "- batch_norm\n"
     "- relu: {name: a}\n"
     "- conv: {filters: 3, kernel: 3, padding: same, use_bias: false}\n"
     "- batch_norm\n"
     "- leaky_relu: 0.2\n"
     "- conv: {filters: 3, kernel: 3, padding: same, use_bias: false}\n"
     "- batch_norm\n"
     "- add: a\n"
     "- relu: {name: b}\n"
     "- conv: {filters: 4, kernel: 1, stride: 2, use_bias: false}\n"
     "- batch_norm: {name: shortcut}\n"
     "- conv: {from: b, filters: 4, kernel: 3, stride: 2, pad: 1, use_bias: false}\n"
     "- batch_norm\n"
     "- add: {with: shortcut}\n"
     "- relu: {name: c}\n"
     "- batch_norm\n"
     "- add: c\n"
     "- leaky_relu: 0.3\n"
     "- batch_norm\n"
     "- relu\n"
     "- max_pool: {size: 2, stride: 1}\n"
     "- add: {from: [max_pool1, max_pool1]}\n"
     "- dense: 3\n"},
    {"layer norm and dropout", "10", 0,
     "layers:\n"
     "- layer_norm\n"
     "- dense: 8\n"
     "- layer_norm: 0.01\n"
     "- gelu\n"
     "- dropout: 0.3\n"
     "- dense: 6\n"
     "- leaky_relu: 0.1\n"
     "- dropout: 0.5\n"
     "- dense: 3\n"
     "loss: {kind: softmax_cross_entropy, label_smoothing: 0.1}\n"},
    {"last output of an LSTM", "tokens", 11,
     "layers:\n"
     "- embedding: {width: 5, weights: {uniform: 0.8}}\n"
     "- dropout: 0.2\n"
     "- lstm: 6\n"
     "- last\n"
     "- dense: 3\n"},
    {"layers on every token", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}, name: words}\n"
     "- dense: {units: 4, activation: tanh}\n"
     "- add: words\n"
     "- layer_norm: 0.01\n"
     "- lstm: {units: 4, name: first}\n"
     "- lstm: 4\n"
     "- add: first\n"
     "- sigmoid\n"
     "- last\n"
     "- softmax\n"
     "- dense: 2\n"},
    {"transformer", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 8, weights: {normal: 0.7}}\n"
     "- position: {length: 4, name: a}\n"
     "- layer_norm\n"
     "- attention: {heads: 2, causal: true, dropout: 0.2}\n"
     "- add: {with: a, name: b}\n"
     "- rms_norm\n"
     "- dense: 12\n"
     "- gelu\n"
     "- dense: 8\n"
     "- add: b\n"
     "- attention: {heads: 1, width: 6, rotary: 100, use_bias: false}\n"
     "- last\n"
     "- dense: 3\n"},
    {"heads that share keys, windows and turns", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 8, weights: {normal: 0.7}, name: x}\n"
     "- attention: {heads: 4, kv_heads: 2, causal: true, window: 2, rotary: 100, rotary_style: pairs}\n"
     "- add: x\n"
     "- attention: {heads: 2, kv_heads: 1, window: 2, dropout: 0.2, use_output_bias: false}\n"
     "- rms_norm\n"
     "- attention: {heads: 3, width: 12, kv_heads: 1, use_bias: false, rotary: 50, rotary_factor: 4, "
     "rotary_original: 6}\n"
     "- last\n"
     "- dense: 3\n"},
    {"shared keys in a window, token by token", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 8, weights: {normal: 0.7}, name: x}\n"
     "- attention: {heads: 4, kv_heads: 2, causal: true, window: 3, rotary: 50, rotary_factor: 2}\n"
     "- add: x\n"
     "- attention: {heads: 2, kv_heads: 1, causal: true, use_output_bias: false, rotary: 10, rotary_style: "
     "pairs}\n"
     "- last\n"
     "- dense: 3\n"},
    {"causal transformer", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}}\n"
     "- position: {length: 6, name: a}\n"
     "- layer_norm\n"
     "- attention: {heads: 2, causal: true}\n"
     "- add: a\n"
     "- attention: {heads: 1, width: 3, causal: true, use_bias: false}\n"
     "- gelu\n"
     "- last\n"
     "- dense: 3\n"},
    {"tokens and their neighbours", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 5, weights: {normal: 0.7}}\n"
     "- conv1d: {filters: 6, kernel: 3, activation: tanh}\n"
     "- conv1d: {filters: 4, kernel: 2, causal: true, use_bias: false}\n"
     "- gru: 5\n"
     "- global_average_pool\n"
     "- dense: 3\n"},
    {"both directions", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}}\n"
     "- bidirectional: 3\n"
     "- bidirectional: {units: 5, cell: gru}\n"
     "- global_max_pool\n"
     "- dense: 3\n"},
    {"values", "6", 0,
     "layers:\n"
     "- dense: {units: 5, activation: sigmoid}\n"
     "- softmax\n"
     "- dense: 4\n"
     "- tanh\n"
     "- dense: 1\n"
     "loss: mean_squared_error\n"},
    {"branches of an image", "6x5x2", 0,
     "layers:\n"
     "- conv: {filters: 3, kernel: 3, padding: same, activation: relu, name: stem}\n"
     "- conv: {filters: 2, kernel: 1, name: narrow}\n"
     "- conv: {filters: 3, kernel: 3, padding: same, activation: tanh, from: stem, name: wide}\n"
     "- concat: {from: [narrow, wide, stem, input], name: all}\n"
     "- global_average_pool: {name: mean}\n"
     "- global_max_pool: {from: all, name: most}\n"
     "- flatten: {from: narrow}\n"
     "- dense: {units: 3, activation: tanh}\n"
     "- concat: [mean, most]\n"
     "- dense: 3\n"},
    {"an image and other numbers in one vector", "21", 0,
     "layers:\n"
     "- slice: {begin: 0, size: 18, name: pixels}\n"
     "- reshape: [3, 3, 2]\n"
     "- batch_norm\n"
     "- conv: {filters: 2, kernel: 2, activation: tanh}\n"
     "- global_average_pool: {name: seen}\n"
     "- slice: {from: input, begin: 18, size: 3}\n"
     "- dense: {units: 3, activation: sigmoid, name: asked}\n"
     "- slice: {begin: 1, size: 2}\n"
     "- concat: seen\n"
     "- dense: 3\n"},
    {"a sum of three, and branches of a vector", "5", 0,
     "layers:\n"
     "- dense: {units: 4, activation: tanh, name: a}\n"
     "- dense: {units: 4, from: input, name: b}\n"
     "- dense: {units: 4, activation: sigmoid, from: a, name: c}\n"
     "- add: {from: [c, a, b, a], name: s}\n"
     "- tanh: {from: a}\n"
     "- concat: s\n"
     "- dense: 3\n"},
    {"means and maxima of tokens", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}, name: words}\n"
     "- global_average_pool: {name: mean}\n"
     "- lstm: {units: 3, from: words, name: story}\n"
     "- concat: {from: [words, story], name: both}\n"
     "- global_max_pool: {name: most}\n"
     "- last: {from: story, name: end}\n"
     "- concat: [mean, most]\n"
     "- dense: 3\n"},
    {"yes or no to several questions", "6", 0,
     "layers:\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 3\n"
     "loss: {kind: binary_cross_entropy, class_weights: [1, 3, 0.5]}\n"},
    {"far values", "6", 0,
     "layers:\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 2\n"
     "loss: {kind: huber, delta: 0.3}\n"},
    {"distances", "5", 0,
     "layers:\n"
     "- dense: {units: 4, activation: sigmoid}\n"
     "- dense: 2\n"
     "loss: mean_absolute_error\n"},
    {"probabilities of classes", "6", 0,
     "layers:\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 3\n"
     "loss: {kind: soft_cross_entropy, label_smoothing: 0.2}\n"},
    {"classes of which the easy ones count less", "6", 0,
     "layers:\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 3\n"
     "loss: {kind: focal, gamma: 1.5, class_weights: [1, 2, 0.5]}\n"},
    {"quantiles", "5", 0,
     "layers:\n"
     "- dense: {units: 4, activation: sigmoid}\n"
     "- dense: 6\n"
     "loss: {kind: quantile, quantiles: [0.1, 0.5, 0.9]}\n"},
    {"counts", "5", 0,
     "layers:\n"
     "- dense: {units: 4, activation: sigmoid}\n"
     "- dense: 2\n"
     "loss: poisson\n"},
    {"pairs by their distance", "8", 0,
     "layers:\n"
     "- slice: {begin: 0, size: 4, name: left}\n"
     "- slice: {begin: 4, size: 4, from: input, name: right}\n"
     "- dense: {units: 5, activation: tanh, from: left, name: one}\n"
     "- dense: {units: 5, activation: tanh, from: right, share: one, name: other}\n"
     "- concat: {from: [one, other]}\n"
     "loss: {kind: contrastive, margin: 2}\n"},
    {"triples by their distances", "4", 0,
     "layers:\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 9\n"
     "loss: {kind: triplet, margin: 4}\n"},
    {"triples by their own distances", "4", 0,
     "layers:\n"
     "- dense: {units: 5, activation: tanh}\n"
     "- dense: 6\n"
     "loss: {kind: triplet, margin: 4, squared: false}\n"},
    {"several losses", "5", 0,
     "layers:\n"
     "- dense: {units: 4, activation: tanh, name: a}\n"
     "- dense: {units: 3, name: which}\n"
     "- dense: {units: 2, from: a, name: whether}\n"
     "- dense: {units: 1, from: a}\n"
     "- concat: {from: [which, whether, dense4]}\n"
     "loss:\n"
     "- {kind: softmax_cross_entropy, outputs: 3, weight: 0.5, class_weights: [1, 2, 0.5]}\n"
     "- {kind: binary_cross_entropy, outputs: 2}\n"
     "- {kind: huber, outputs: 1, weight: 2, delta: 0.3}\n"},
    {"tokens whose classes count more", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 5, weights: {normal: 0.7}}\n"
     "- gru: 4\n"
     "- dense: 3\n"
     "loss: {class_weights: [0.5, 2, 1.25], label_smoothing: 0.1}\n"},
    {"classes that count more", "5", 0,
     "layers:\n"
     "- dense: {units: 4, activation: tanh}\n"
     "- dense: 3\n"
     "loss: {class_weights: [0.5, 2, 1], label_smoothing: 0.1}\n"},
    {"softmax against values", "3x2x2", 0,
     "layers:\n"
     "- conv: {filters: 3, kernel: 1}\n"
     "- softmax\n"
     "- flatten\n"
     "loss: mean_squared_error\n"},
    {"nothing to learn", "5", 0,
     "layers:\n"
     "- tanh\n"
     "- dropout: 0.5\n"
     "- softmax\n"},
    {"root mean squares of images", "4x3x2", 0,
     "layers:\n"
     "- conv: {filters: 3, kernel: 2}\n"
     "- rms_norm\n"
     "- flatten\n"
     "- rms_norm: 0.1\n"
     "- dense: 3\n"},
    {"root mean squares of tokens and vectors", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}, name: words}\n"
     "- rms_norm: 0.01\n"
     "- dense: {units: 6, activation: tanh}\n"
     "- add: words\n"
     "- rms_norm\n"
     "- last\n"
     "- rms_norm\n"
     "- dense: 3\n"},
    {"gates of an image's channels", "5x4x2", 0,
     "layers:\n"
     "- conv: {filters: 4, kernel: 3, padding: same, use_bias: false}\n"
     "- batch_norm\n"
     "- silu: {name: a}\n"
     "- global_average_pool\n"
     "- dense: 3\n"
     "- hard_swish\n"
     "- dense: {units: 4, activation: sigmoid, name: gate}\n"
     "- multiply: {from: [a, gate], name: b}\n"
     "- conv: {filters: 4, kernel: [5, 4], activation: tanh}\n"
     "- multiply: a\n"
     "- add: b\n"
     "- hard_swish: {name: c}\n"
     "- multiply: c\n"
     "- flatten: {name: d}\n"
     "- silu\n"
     "- multiply: d\n"
     "- dense: 3\n"},
    {"gates of tokens", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}, name: words}\n"
     "- dense: {units: 5, name: up}\n"
     "- dense: {units: 5, from: words}\n"
     "- silu\n"
     "- multiply: up\n"
     "- dense: 6\n"
     "- add: words\n"
     "- last\n"
     "- dense: 3\n"},
    {"convolutions by groups", "7x8x3", 0,
     "layers:\n"
     "- conv: {filters: 6, kernel: 3, padding: same, groups: 3, activation: relu}\n"
     "- max_pool: 2\n"
     "- conv: {filters: 6, kernel: 3, padding: same, groups: 6, use_bias: false}\n"
     "- batch_norm\n"
     "- silu\n"
     "- conv: {filters: 4, kernel: [2, 3], groups: 2, stride: [1, 2], activation: tanh}\n"
     "- conv_transpose: {filters: 6, kernel: 2, stride: 2, groups: 2}\n"
     "- tanh\n"
     "- conv: {filters: 6, kernel: 3, dilation: 2, pad: 2, groups: 6, activation: sigmoid}\n"
     "- dense: 3\n"},
    {"neighbours of tokens by groups", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}}\n"
     "- conv1d: {filters: 6, kernel: 3, groups: 6, activation: tanh}\n"
     "- conv1d: {filters: 4, kernel: 2, groups: 2, causal: true, use_bias: false}\n"
     "- last\n"
     "- dense: 3\n"},
    {"neighbours of tokens further away", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}}\n"
     "- conv1d: {filters: 4, kernel: 3, dilation: 2, activation: tanh}\n"
     "- conv1d: {filters: 4, kernel: 2, dilation: 3, groups: 2}\n"
     "- conv1d: {filters: 3, kernel: 2, dilation: 2, causal: true, use_bias: false}\n"
     "- global_average_pool\n"
     "- dense: 3\n"},
    {"every other token", "23x1x3", 0,
     "layers:\n"
     "- tokens\n"
     "- conv1d: {filters: 4, kernel: 3, stride: 2, activation: tanh, name: halved}\n"
     "- attention: {heads: 2, causal: true}\n"
     "- add: halved\n"
     "- conv1d: {filters: 6, kernel: 4, stride: 3, dilation: 2, groups: 2, causal: true, activation: relu}\n"
     "- conv1d: {filters: 4, kernel: 3, groups: 2}\n"
     "- lstm: 3\n"
     "- conv1d: {filters: 3, kernel: 2, stride: 5, use_bias: false}\n"
     "- global_average_pool\n"
     "- dense: 3\n"},
    {"the first token, as an encoder reads it", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}, name: tokens}\n"
     "- position: {length: 5, name: places}\n"
     "- layer_norm: {epsilon: 1e-3, name: begun}\n"
     "- attention: 2\n"
     "- add: begun\n"
     "- layer_norm: {epsilon: 1e-3, name: attended}\n"
     "- dense: 8\n"
     "- gelu\n"
     "- dense: 6\n"
     "- add: attended\n"
     "- layer_norm: 1e-3\n"
     "- first\n"
     "- dense: {units: 6, activation: tanh}\n"
     "- dense: 3\n"},
    {"tokens that look at those of another branch", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}, name: words}\n"
     "- conv1d: {filters: 4, kernel: 3, activation: tanh, name: memory}\n"
     "- attention: {heads: 2, causal: true, from: words}\n"
     "- add: {with: words, name: x}\n"
     "- cross_attention: {with: memory, heads: 3}\n"
     "- add: {with: x, name: y}\n"
     "- cross_attention: {from: [memory, y], heads: 4, kv_heads: 2, width: 8, use_bias: false, name: z}\n"
     "- cross_attention: {from: [y, z], heads: 2, dropout: 0.2, name: w}\n"
     "- cross_attention: {with: w, heads: 1}\n"
     "- last\n"
     "- dense: 3\n"},
    {"layers that share parameters", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}, name: words}\n"
     "- embedding: {width: 6, share: words, from: input, name: again}\n"
     "- attention: {heads: 2, causal: true, name: a}\n"
     "- layer_norm: {name: n}\n"
     "- dense: {units: 6, activation: tanh, name: d}\n"
     "- add: {with: words}\n"
     "- attention: {heads: 2, causal: true, share: a}\n"
     "- layer_norm: {share: n}\n"
     "- dense: {units: 6, share: d, name: e}\n"
     "- dense: {units: 6, activation: tanh, share: e}\n"
     "- add: {with: again}\n"
     "- last\n"
     "- dense: 3\n"},
    {"towers that share parameters", "6", 0,
     "layers:\n"
     "- dense: {units: 48, name: all}\n"
     "- slice: {begin: 0, size: 24, name: left}\n"
     "- slice: {begin: 24, size: 24, from: all, name: right}\n"
     "- reshape: {shape: [4, 3, 2], from: left}\n"
     "- conv: {filters: 4, kernel: 2, activation: relu, name: c}\n"
     "- max_pool: {size: [3, 1], name: one}\n"
     "- reshape: {shape: [4, 3, 2], from: right}\n"
     "- conv: {filters: 4, kernel: 2, activation: relu, share: c}\n"
     "- max_pool: {size: [3, 1]}\n"
     "- multiply: one\n"
     "- dense: {units: 5, use_bias: false}\n"
     "- tanh\n"
     "- dense: 3\n"},
    {"channels of pixels", "5x4x2", 0,
     "layers:\n"
     "- conv: {filters: 6, kernel: 3, padding: same, name: a}\n"
     "- layer_norm: {per: pixel}\n"
     "- gelu\n"
     "- conv: {filters: 6, kernel: 1, groups: 6, use_bias: false}\n"
     "- add: a\n"
     "- layer_norm: {per: pixel, epsilon: 0.1}\n"
     "- global_average_pool\n"
     "- dense: 3\n"},
    {"branches that are left out", "5x4x2", 0,
     "layers:\n"
     "- conv: {filters: 3, kernel: 3, padding: same, use_bias: false, name: a}\n"
     "- instance_norm\n"
     "- tanh\n"
     "- stochastic_depth: 0.4\n"
     "- add: {with: a, name: b}\n"
     "- instance_norm: 0.1\n"
     "- relu6\n"
     "- multiply: b\n"
     "- global_average_pool\n"
     "- stochastic_depth: 0.2\n"
     "- dense: 3\n"},
    {"tokens of examples that are left out", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}, name: words}\n"
     "- dense: 4\n"
     "- stochastic_depth: 0.4\n"
     "- add: words\n"
     "- last\n"
     "- dense: 3\n"},
    {"groups of channels of images and vectors", "5x4x2", 0,
     "layers:\n"
     "- conv: {filters: 6, kernel: 3, padding: same}\n"
     "- group_norm: 2\n"
     "- relu\n"
     "- conv: {filters: 4, kernel: 2}\n"
     "- group_norm: {groups: 2, epsilon: 0.01}\n"
     "- tanh\n"
     "- global_average_pool\n"
     "- group_norm: 1\n"
     "- dense: 3\n"},
    {"groups of channels of tokens", "tokens", 9,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}}\n"
     "- group_norm: 3\n"
     "- dense: {units: 8, activation: tanh}\n"
     "- group_norm: {groups: 2, epsilon: 0.1}\n"
     "- last\n"
     "- dense: 3\n"},
    {"scores of the next token, all that GPTs have", "tokens", 8,
     "layers:\n"
     "- embedding: {width: 8, weights: {normal: 0.7}, name: words}\n"
     "- position: {length: 9, weights: {normal: 0.3}, name: x}\n"
     "- layer_norm\n"
     "- attention: {heads: 2, width: 16, causal: true, rotary: 100}\n"
     "- add: {with: x, name: y}\n"
     "- layer_norm\n"
     "- dense: 9\n"
     "- gelu: {approximate: tanh}\n"
     "- dense: 8\n"
     "- add: y\n"
     "- unembedding: words\n"},
    {"a label for every pixel", "6x4x2", 0,
     "layers:\n"
     "- conv: {filters: 4, kernel: 3, padding: same, activation: tanh, name: fine}\n"
     "- max_pool: 2\n"
     "- conv: {filters: 5, kernel: 3, padding: same, activation: tanh}\n"
     "- conv_transpose: {filters: 4, kernel: 2, stride: 2}\n"
     "- concat: [fine]\n"
     "- conv: {filters: 3, kernel: 1}\n"
     "loss: {per: pixel, label_smoothing: 0.1, class_weights: [0.5, 2, 1.25]}\n"},
    {"tokens of an image in all ways", "4x4x3", 0,
     "layers:\n"
     "- conv: {filters: 5, kernel: 1, name: image}\n"
     "- tokens: {name: places}\n"
     "- conv1d: {filters: 4, kernel: 3, activation: tanh}\n"
     "- bidirectional: {units: 3, cell: gru}\n"
     "- gru: 5\n"
     "- add: {with: places, name: all}\n"
     "- global_max_pool: {name: most}\n"
     "- last: {from: all, name: end}\n"
     "- global_average_pool: {from: image, name: mean}\n"
     "- concat: [most, end]\n"
     "- dense: 3\n"},
    {"numbers as a sequence", "12", 0,
     "layers:\n"
     "- reshape: {shape: [4, 1, 3]}\n"
     "- tokens: {name: series}\n"
     "- lstm: {units: 3, name: long}\n"
     "- conv1d: {filters: 4, kernel: 3, from: series, name: near}\n"
     "- gru: {units: 4, from: series, name: gated}\n"
     "- position: {length: 4, weights: {normal: 0.3}, from: series, name: placed}\n"
     "- bidirectional: {units: 2, from: series, name: both}\n"
     "- concat: {from: [long, near, gated, placed, both]}\n"
     "- attention: {heads: 2}\n"
     "- last\n"
     "- dense: 3\n"},
    {"tokens of an image", "6x4x2", 0,
     "layers:\n"
     "- conv: {filters: 6, kernel: 2, stride: 2}\n"
     "- tokens\n"
     "- position: {length: 6, weights: {normal: 0.3}, name: x}\n"
     "- layer_norm\n"
     "- attention: 2\n"
     "- add: x\n"
     "- global_average_pool\n"
     "- dense: 3\n"},
    {"a label for every token", "tokens", 7,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}}\n"
     "- lstm: 5\n"
     "- dense: 3\n"
     "loss: {kind: softmax_cross_entropy, label_smoothing: 0.1}\n"},
    {"the next token, by the vectors of the embedding", "tokens", 6,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}, name: words}\n"
     "- lstm: 5\n"
     "- dense: {units: 4, activation: tanh}\n"
     "- unembedding: words\n"},
    {"the vectors of an embedding behind the last token", "tokens", 5,
     "layers:\n"
     "- embedding: {width: 3, weights: {normal: 0.7}, name: words}\n"
     "- last\n"
     "- dense: {units: 3, activation: tanh}\n"
     "- unembedding: words\n"
     "- dense: 2\n"},
    {"means that count the border", "7x6x2", 0,
     "layers:\n"
     "- average_pool: {size: 3, stride: 2, pad: 1, count_border: true}\n"
     "- tanh\n"
     "- average_pool: {size: [2, 3], stride: 1, padding: same, count_border: true}\n"
     "- dense: 3\n"},
};
const int network_count = sizeof networks / sizeof networks[0];

void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s: %s", tr_status_name(status), tr_error_message());
}

void networks_have_every_layer(void)
{
    const struct tr_entry *const *classes = tr_layer_classes.entries;
    int count = tr_registry_count(&tr_layer_classes);
    bool *seen = tr_alloc_zero((size_t)count, sizeof *seen);
    assert_non_null(seen);
    for (int i = 0; i < network_count; i++) {
        struct tr_model *model;
        must(network_build(networks[i].text, networks[i].input, networks[i].vocabulary, &model));
        for (int k = 0; k < model->layer_count; k++)
            for (int c = 0; c < count; c++) seen[c] |= classes[c] == &model->layers[k].class->entry;
        /* No layer of them sets its pace of learning, so that all learn. */
        for (int k = 0; k < model->parameter_count; k++)
            if (model->parameters[k].pace.rate_factor != 1 || model->parameters[k].pace.frozen)
                fail_msg("%s: parameter \"%s\" does not learn", networks[i].name, model->parameters[k].name);
        tr_model_destroy(&model);
    }
    for (int c = 0; c < count; c++)
        if (!seen[c])
            fail_msg("no network of tests/support/networks.c has a layer \"%s\"; add one", classes[c]->name);
    tr_free(seen);
}

#define OPERATION_NAME(op) #op,
static const char *const operations[] = {TR_DEVICE_OPS(OPERATION_NAME) NULL};
#undef OPERATION_NAME

void refusal_of_a_new_operation(const char *format, const char *const *known)
{
    const char *message = tr_error_message();
    char refused[128];
    assert_non_null(strstr(message, "layer \""));
    for (int i = 0; operations[i]; i++) {
        snprintf(refused, sizeof refused, "needs the operation \"%s\", which %s cannot say yet",
                 operations[i], format);
        if (!strstr(message, refused)) continue;
        for (; *known; known++)
            if (strcmp(*known, operations[i]) == 0)
                fail_msg("%s has lost the operation \"%s\": %s", format, operations[i], message);
        return;
    }
    fail_msg("no clear refusal by %s: %s", format, message);
}

void refusal_of_tokens(void)
{
    if (!strstr(tr_error_message(), "scores every token") &&
        !strstr(tr_error_message(), "tokens of an image"))
        fail_msg("no clear refusal of a network that scores every token: %s", tr_error_message());
}

#define TWO "two "

struct tr_shape network_shape(const char *text)
{
    struct tr_shape shape = {0};
    if (strncmp(text, TWO, strlen(TWO)) == 0) text += strlen(TWO);
    if (strncmp(text, "tokens", 6) == 0) {
        shape.sequence = true;
        text += text[6] ? strlen("tokens x ") : 6;
    }
    for (char *end; *text; text = *end ? end + 1 : end) {
        assert_true(shape.rank < TR_MAX_RANK);
        shape.size[shape.rank++] = strtoll(text, &end, 10);
        assert_ptr_not_equal(end, text);
    }
    return shape;
}

tr_status network_build(const char *text, const char *input, int64_t vocabulary, struct tr_model **out)
{
    tr_config *root;
    must(tr_config_parse(text, strlen(text), "test.yaml", &root));
    struct tr_model_input description = {
        .shape = network_shape(input), .vocabulary = vocabulary, .whole = true};
    if (strncmp(input, TWO, strlen(TWO)) == 0) {
        description.text_part = "first";
        description.second_text = "second";
        description.second_vocabulary = vocabulary;
    }
    tr_status status = tr_model_build(root, &description, out);
    tr_config_destroy(&root);
    return status;
}

/* ---- numbers ---- */

enum stream { STREAM_PARAMETERS, STREAM_INPUT, STREAM_TARGET, STREAM_TOKEN, STREAM_LENGTH, STREAM_LABEL };

static uint32_t number(enum stream stream, int64_t index)
{
    uint32_t block[4];
    tr_rng_philox((tr_rng_key){SEED, 0x7465}, (uint32_t)stream, (uint32_t)index, 0, 0, block);
    return block[0];
}

/* In [-1, 1). */
static float real(enum stream stream, int64_t index)
{
    return 2 * tr_rng_unit(number(stream, index)) - 1;
}

static void *room(int64_t count, size_t size)
{
    void *memory = tr_alloc_zero((size_t)count + 1, size);
    assert_non_null(memory);
    return memory;
}

static void *device_room(const struct trial *trial, size_t bytes)
{
    void *memory;
    must(tr_device_alloc(trial->device, bytes ? bytes : 1, &memory));
    return memory;
}

static void upload(const struct trial *trial, void *to, const void *from, int64_t bytes)
{
    must(tr_device_to_device(trial->device, to, from, (size_t)bytes));
    must(tr_device_wait(trial->device));
}

/* ---- a trial ---- */

/* Biases of 0 and gains of 1 would hide a multiplication with, or an addition to, the wrong operand. */
static void make_parameters(struct trial *trial)
{
    const struct tr_model *model = trial->model;
    float *values = room(model->arena_floats, sizeof *values);
    tr_model_initialize(model, SEED, 0, 1, values);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        for (int64_t k = 0; k < parameter->count; k++)
            values[parameter->offset + k] += 0.25f * real(STREAM_PARAMETERS, parameter->offset + k);
    }
    size_t bytes = (size_t)model->arena_floats * sizeof *values;
    trial->parameters = device_room(trial, bytes);
    upload(trial, trial->parameters, values, (int64_t)bytes);
    tr_free(values);
}

static void make_batch(struct trial *trial)
{
    const struct tr_model *model = trial->model;
    bool sequence = model->input.sequence;
    int64_t inputs = tr_shape_count(&model->input), outputs = tr_shape_count(&model->output);
    trial->offset = room(trial->examples + 1, sizeof *trial->offset);
    for (int64_t i = 0; i < trial->examples; i++)
        trial->offset[i + 1] =
            trial->offset[i] + (sequence ? 1 + (int32_t)(number(STREAM_LENGTH, i) % 6) : 0);
    trial->tokens = trial->offset[trial->examples];
    trial->token = room(trial->tokens, sizeof *trial->token);
    for (int64_t i = 0; i < trial->tokens; i++)
        trial->token[i] = (int32_t)(number(STREAM_TOKEN, i) % (uint32_t)model->vocabulary);
    trial->input = room(trial->examples * inputs, sizeof *trial->input);
    for (int64_t i = 0; i < trial->examples * inputs; i++) trial->input[i] = 1.5f * real(STREAM_INPUT, i);
    const int64_t each = tr_loss_labels(&model->loss), width = tr_loss_width(&model->loss, outputs);
    trial->labels = model->output.sequence ? trial->tokens : trial->examples;
    trial->compared = trial->labels * each;
    trial->label = room(trial->compared, sizeof *trial->label);
    trial->target = room(trial->examples * outputs, sizeof *trial->target);
    for (int64_t i = 0; i < trial->compared; i++) {
        trial->label[i] = (int32_t)(number(STREAM_LABEL, i) % (uint32_t)width);
        /* Some tokens and pixels have none. */
        if ((model->output.sequence || each > 1) && number(STREAM_LENGTH, 1000 + i) % 5 == 0)
            trial->label[i] = -1;
        trial->labelled += trial->label[i] >= 0;
    }
    for (int64_t i = 0; i < trial->examples * outputs; i++) trial->target[i] = real(STREAM_TARGET, i);
    for (int64_t i = 0; i < trial->examples * outputs && tr_loss_class_of(&model->loss)->soft; i++)
        trial->target[i] = fabsf(trial->target[i]); /* probabilities */
    /* After classes of 0 and 1, which the first of several losses may need. */
    int64_t targets = tr_loss_targets(&model->loss, outputs);
    for (int64_t i = 0; i < trial->examples && model->loss.head_count > 0; i++)
        trial->target[i * targets] = (float)(number(STREAM_LABEL, i) % 2);
}

/* Texts of other lengths than the first ones. */
static void make_second(struct trial *trial)
{
    trial->second_offset = room(trial->examples + 1, sizeof *trial->second_offset);
    trial->second_row = room(trial->microbatches, sizeof *trial->second_row);
    for (int64_t i = 0; i < trial->examples && trial->model->second_text[0]; i++)
        trial->second_offset[i + 1] =
            trial->second_offset[i] + 1 + (int32_t)(number(STREAM_LENGTH, 2000 + i) % 8);
    trial->second_tokens = trial->second_offset[trial->examples];
    trial->second = room(trial->second_tokens, sizeof *trial->second);
    for (int64_t i = 0; i < trial->second_tokens; i++)
        trial->second[i] = (int32_t)(number(STREAM_TOKEN, 2000 + i) % (uint32_t)trial->model->vocabulary);
}

static void make_cut(struct trial *trial)
{
    trial->example_row = room(trial->microbatches, sizeof *trial->example_row);
    trial->token_row = room(trial->microbatches, sizeof *trial->token_row);
    for (int32_t i = 0; i <= trial->microbatches; i++) {
        trial->example_row[i] = tr_cut(trial->examples, trial->microbatches, i);
        trial->token_row[i] = trial->offset[trial->example_row[i]];
        trial->second_row[i] = trial->second_offset[trial->example_row[i]];
    }
}

void trial_make(struct trial *trial, const struct network *network, const char *device, int64_t examples,
                int32_t microbatches)
{
    *trial = (struct trial){.examples = examples, .microbatches = microbatches};
    must(tr_device_create(device, 2, NULL, &trial->device));
    must(network_build(network->text, network->input, network->vocabulary, &trial->model));
    trial->stride = (trial->model->arena_floats + TR_PASS_SUMS + 15) / 16 * 16;
    make_parameters(trial);
    make_batch(trial);
    make_second(trial);
    make_cut(trial);
    struct tr_step_scalars scalars = {.step = 3, .clip_scale = 1};
    trial->scalars = device_room(trial, sizeof scalars);
    upload(trial, trial->scalars, &scalars, sizeof scalars);
}

void trial_release(struct trial *trial)
{
    tr_device_free(trial->device, trial->parameters);
    tr_device_free(trial->device, trial->scalars);
    tr_model_destroy(&trial->model);
    tr_device_destroy(&trial->device);
    tr_free(trial->example_row);
    tr_free(trial->token_row);
    tr_free(trial->second);
    tr_free(trial->second_offset);
    tr_free(trial->second_row);
    tr_free(trial->input);
    tr_free(trial->target);
    tr_free(trial->token);
    tr_free(trial->offset);
    tr_free(trial->label);
}

struct tr_pass_limits trial_limits(const struct trial *trial, bool training)
{
    return (struct tr_pass_limits){training, trial->examples, trial->tokens, trial->second_tokens,
                                   trial->microbatches};
}

float *trial_arenas(const struct trial *trial, int count)
{
    int64_t floats = trial->stride * count;
    float *arenas = device_room(trial, (size_t)floats * sizeof *arenas);
    struct tr_op_fill zero = {floats, 0, arenas};
    must(tr_device_fill(trial->device, &zero));
    return arenas;
}

/* Copies rows [begin, end) of the batch to the pass. */
static void feed_rows(struct trial *trial, tr_pass *pass, int64_t begin, int64_t end)
{
    const struct tr_model *model = trial->model;
    int64_t width = tr_shape_count(&model->input), outputs = tr_shape_count(&model->output),
            rows = end - begin, each = tr_loss_labels(&model->loss);
    int32_t first = trial->offset[begin], *offset = room(rows + 1, sizeof *offset);
    for (int64_t i = 0; i <= rows; i++) offset[i] = trial->offset[begin + i] - first;
    if (tr_pass_input(pass))
        upload(trial, tr_pass_input(pass), trial->input + begin * width,
               rows * width * (int64_t)sizeof(float));
    if (tr_pass_offset(pass))
        upload(trial, tr_pass_offset(pass), offset, (rows + 1) * (int64_t)sizeof *offset);
    if (tr_pass_token(pass))
        upload(trial, tr_pass_token(pass), trial->token + first, offset[rows] * (int64_t)sizeof(int32_t));
    if (tr_pass_label(pass))
        upload(trial, tr_pass_label(pass), trial->label + (model->output.sequence ? first : begin * each),
               (model->output.sequence ? offset[rows] : rows * each) * (int64_t)sizeof(int32_t));
    if (tr_pass_target(pass)) {
        int64_t targets = tr_loss_targets(&model->loss, outputs);
        upload(trial, tr_pass_target(pass), trial->target + begin * targets,
               rows * targets * (int64_t)sizeof(float));
    }
    if (tr_pass_second_offset(pass)) {
        const int32_t *second = trial->second_offset + begin;
        for (int64_t i = 0; i <= rows; i++) offset[i] = second[i] - second[0];
        upload(trial, tr_pass_second_offset(pass), offset, (rows + 1) * (int64_t)sizeof *offset);
        upload(trial, tr_pass_second_token(pass), trial->second + second[0],
               offset[rows] * (int64_t)sizeof(int32_t));
    }
    tr_free(offset);
}

const struct tr_pass_batch *trial_feed(struct trial *trial, tr_pass *pass, int32_t first, int32_t end)
{
    static struct tr_pass_batch batch;
    static int64_t example_row[65], token_row[65], second_row[65], tree[2 * TR_TREE_DEPTH + 1];
    static int32_t bound[2 * TR_TREE_DEPTH + 1];
    assert_true(end - first <= 64);
    int64_t begin_row = trial->example_row[first], end_row = trial->example_row[end];
    for (int32_t i = first; i <= end; i++) {
        example_row[i - first] = trial->example_row[i] - begin_row;
        token_row[i - first] = trial->token_row[i] - trial->token_row[first];
        second_row[i - first] = trial->second_row[i] - trial->second_row[first];
    }
    int nodes = tr_tree_cover(trial->microbatches, first, end, tree);
    for (int i = 0; i <= nodes; i++) bound[i] = (int32_t)(tree[i] - first);
    feed_rows(trial, pass, begin_row, end_row);
    batch = (struct tr_pass_batch){
        .examples = end_row - begin_row,
        .tokens = token_row[end - first],
        .global_examples = trial->examples,
        .global_labels = trial->labelled,
        .first_example = (uint32_t)begin_row,
        .microbatches = end - first,
        .nodes = nodes,
        .example_row = example_row,
        .token_row = trial->model->input.sequence ? token_row : NULL,
        .second_tokens = second_row[end - first],
        .second_row = second_row,
        .node_bound = bound,
        .seed = SEED,
        .scalars = trial->scalars,
    };
    return &batch;
}

void trial_run(struct trial *trial, tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
               float *gradients)
{
    must(tr_pass_forward(pass, batch, parameters, gradients, trial->stride));
    must(tr_pass_loss(pass, batch));
    if (gradients) must(tr_pass_backward(pass, batch, parameters, gradients, trial->stride));
    must(tr_device_wait(trial->device));
}

float *trial_output(struct trial *trial)
{
    const struct tr_pass_limits limits = trial_limits(trial, false);
    const int64_t rows = trial->labels, outputs = tr_shape_count(&trial->model->output);
    size_t bytes = (size_t)(rows * outputs) * sizeof(float);
    float *output = tr_alloc(1, bytes);
    tr_pass *pass;
    assert_non_null(output);
    must(tr_pass_create(trial->device, trial->model, &limits, &pass));
    trial_run(trial, pass, trial_feed(trial, pass, 0, trial->microbatches), trial->parameters, NULL);
    must(tr_device_to_host(trial->device, output, tr_pass_output(pass), bytes));
    must(tr_device_wait(trial->device));
    tr_pass_destroy(&pass);
    return output;
}
