"""The jobs on TensorFlow, as a rival in speed: tensorflow_jobs.py JOB THREADS keras|graph [DATA_DIRECTORY]

keras: Model.fit() of a compiled model. graph: the graphs and feed_dict of TensorFlow 1 (tf.compat.v1), without lstm and the
jobs of real size.
JOB is one of rivals.JOBS. Prints one line: examples per second of the best round, and the peak memory in MiB.
"""
import os
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy
import rivals
import tensorflow as tf
from keras_networks import NETWORKS, normalized

NAME, THREADS, WAY = sys.argv[1], int(sys.argv[2]), sys.argv[3]
JOB = rivals.JOBS[NAME]
FILTERS = [16, 32, 64]  # of the blocks of the residual network


def examples():
    draw = numpy.random.default_rng(1)
    if NAME in ("lstm", "lstm2"):
        return draw.integers(1, rivals.WORDS, (rivals.SENTENCES, rivals.TOKENS)), draw.integers(0, 2, rivals.SENTENCES)
    if NAME == "residual":
        pixels = draw.integers(0, 256, (rivals.COLOUR_IMAGES, 32, 32, 3))
        return pixels.astype(numpy.float32) / 255, draw.integers(0, 10, rivals.COLOUR_IMAGES)
    if NAME in ("resnet18", "resnet50"):
        return draw.random((256, 96, 96, 3), numpy.float32), draw.integers(0, 10, 256)
    if NAME == "unet":
        return draw.random((32, 128, 128, 3), numpy.float32), draw.integers(0, 2, (32, 128 * 128)).astype(numpy.float32)
    pixels, labels = (numpy.frombuffer(part, numpy.uint8) for part in rivals.mnist(sys.argv[4] if sys.argv[4:] else "data"))
    scale = numpy.float32(1 if NAME == "mlp" else 1 / 255)
    return pixels.reshape(-1, 28, 28, 1).astype(numpy.float32) * scale, labels.astype(numpy.int64)


def keras_network():
    layers = tf.keras.layers

    if NAME in NETWORKS:
        return NETWORKS[NAME]()
    if NAME == "residual":
        inputs = tf.keras.Input((32, 32, 3))
        x = layers.ReLU()(normalized(inputs, FILTERS[0], 3))
        for filters in FILTERS:
            stride = filters // x.shape[-1]
            shortcut = normalized(x, filters, 1, stride) if stride > 1 else x
            y = layers.ReLU()(normalized(x, filters, 3, stride))
            x = layers.ReLU()(layers.Add()([normalized(y, filters, 3), shortcut]))
        return tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    parts = {
        "wide": lambda: [
            layers.Conv2D(64, 5, activation="relu"), layers.MaxPool2D(), layers.Conv2D(256, 3, activation="relu"),
            layers.Conv2D(512, 3, activation="relu"), layers.MaxPool2D(), layers.Flatten(), layers.Dense(2048),
            layers.Dropout(0.75), layers.Dense(1024), layers.Dropout(0.75), layers.Dense(10)],
        "cnn": lambda: [
            layers.Conv2D(32, 5, padding="same", activation="relu"), layers.MaxPool2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"), layers.MaxPool2D(), layers.Flatten(),
            layers.Dense(1024, activation="relu"), layers.Dropout(0.5), layers.Dense(10)],
        "mlp": lambda: [
            layers.Flatten(),
            *(layers.Dense(units, activation=activation, kernel_regularizer=tf.keras.regularizers.L2(1e-4),
                           kernel_initializer=tf.keras.initializers.TruncatedNormal(stddev=0.1))
              for units, activation in ((500, "relu"), (10, None)))],
        "lstm": lambda: [layers.Embedding(rivals.WORDS, 128), layers.LSTM(128), layers.Dense(2)],
    }
    return tf.keras.Sequential(parts[NAME]())


def keras_rate(inputs, labels):
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    optimizers = tf.keras.optimizers
    if NAME == "mlp":
        decay = optimizers.schedules.ExponentialDecay(JOB.rate, 600, 0.99)
        optimizer = optimizers.SGD(decay, use_ema=True, ema_momentum=0.99)
    elif NAME in ("residual", "resnet18", "resnet50"):
        optimizer = optimizers.SGD(JOB.rate, momentum=0.9)
    else:
        optimizer = optimizers.Adam(JOB.rate)
    model = keras_network()
    losses = tf.keras.losses
    loss = losses.BinaryCrossentropy if NAME == "unet" else losses.SparseCategoricalCrossentropy
    model.compile(optimizer, loss(from_logits=True))
    data = tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(10000).batch(JOB.batch, drop_remainder=True)
    data = data.take(JOB.steps).prefetch(2)
    model.fit(data, verbose=0)
    best = float("inf")
    for _ in range(rivals.ROUNDS):
        start = time.perf_counter()
        model.fit(data, verbose=0)
        best = min(best, time.perf_counter() - start)
    return min(JOB.steps, len(inputs) // JOB.batch) * JOB.batch / best


def graph_logits(v1, x, keep):
    """The logits of a graph, and the matrices that count for the mlp's L2."""

    def weights(*shape):
        return v1.Variable(v1.truncated_normal(shape, stddev=0.1))

    def biases(width):
        return v1.Variable(tf.constant(0.1, shape=[width]))

    def convolution(x, filters, kernel, stride=1, padding="SAME"):
        return v1.nn.conv2d(x, weights(kernel, kernel, x.shape[-1], filters), [1, stride, stride, 1], padding)

    def pool(x):
        return v1.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")

    def dense(x, width):
        matrix = weights(x.shape[-1], width)
        matrices.append(matrix)
        return tf.matmul(x, matrix) + biases(width)

    def normalized(x, filters, kernel, stride=1):
        x = convolution(x, filters, kernel, stride)
        return v1.nn.fused_batch_norm(x, v1.Variable(tf.ones([filters])), v1.Variable(tf.zeros([filters])))[0]

    matrices, relu = [], tf.nn.relu
    if NAME == "wide":
        x = pool(relu(convolution(x, 64, 5, padding="VALID") + biases(64)))
        x = relu(convolution(x, 256, 3, padding="VALID") + biases(256))
        x = pool(relu(convolution(x, 512, 3, padding="VALID") + biases(512)))
        x = v1.nn.dropout(dense(tf.reshape(x, [-1, 8192]), 2048), keep_prob=keep)
        x = v1.nn.dropout(dense(x, 1024), keep_prob=keep)
    elif NAME == "cnn":
        x = pool(relu(convolution(x, 32, 5) + biases(32)))
        x = pool(relu(convolution(x, 64, 5) + biases(64)))
        x = v1.nn.dropout(relu(dense(tf.reshape(x, [-1, 3136]), 1024)), keep_prob=keep)
    elif NAME == "mlp":
        x = relu(dense(tf.reshape(x, [-1, 784]), 500))
    else:
        x = relu(normalized(x, FILTERS[0], 3))
        for filters in FILTERS:
            stride = filters // x.shape[-1]
            shortcut = normalized(x, filters, 1, stride) if stride > 1 else x
            x = relu(normalized(relu(normalized(x, filters, 3, stride)), filters, 3) + shortcut)
        x = tf.reduce_mean(x, [1, 2])
    return dense(x, 10), matrices


def graph_rate(inputs, labels):
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    x, y = v1.placeholder(tf.float32, [None, *inputs.shape[1:]]), v1.placeholder(tf.int64, [None])
    keep = v1.placeholder(tf.float32)
    logits, matrices = graph_logits(v1, x, keep)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    if NAME == "mlp":
        loss += sum(1e-4 * tf.nn.l2_loss(matrix) for matrix in matrices)
        done = v1.Variable(0, trainable=False)
        descent = v1.train.GradientDescentOptimizer(v1.train.exponential_decay(JOB.rate, done, 600, 0.99))
        moved = descent.minimize(loss, done)
        with tf.control_dependencies([moved]):
            train = v1.train.ExponentialMovingAverage(0.99).apply(v1.trainable_variables())
    elif NAME == "residual":
        train = v1.train.MomentumOptimizer(JOB.rate, 0.9).minimize(loss)
    else:
        train = v1.train.AdamOptimizer(JOB.rate).minimize(loss)
    threads = v1.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=THREADS)
    session = v1.Session(config=threads)
    session.run(v1.global_variables_initializer())

    def step(number):
        first = number * JOB.batch % (len(inputs) - JOB.batch + 1)
        part = slice(first, first + JOB.batch)
        session.run(train, {x: inputs[part], y: labels[part], keep: 0.25 if NAME == "wide" else 0.5})

    return rivals.time_steps(step, JOB)


def main():
    if WAY == "graph" and (NAME == "lstm" or NAME in NETWORKS):
        sys.exit(f"no graph of {NAME}: TensorFlow 1's LSTM cells are gone from tf.compat.v1, jobs of real size have Keras")
    rivals.tell((keras_rate if WAY == "keras" else graph_rate)(*examples()))


main()
