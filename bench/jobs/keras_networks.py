"""The networks of real size on Keras, as bench/jobs/networks.py writes them for Trireme."""
import rivals
import tensorflow as tf

layers = tf.keras.layers


def normalized(x, filters, kernel, stride=1):
    x = layers.Conv2D(filters, kernel, stride, padding="same", use_bias=False)(x)
    return layers.BatchNormalization()(x)


def resnet(depth):
    wide, counts = (4, [3, 4, 6, 3]) if depth == 50 else (1, [2, 2, 2, 2])
    inputs = tf.keras.Input((96, 96, 3))
    x = layers.MaxPool2D(3, 2, padding="same")(layers.ReLU()(normalized(inputs, 64, 7, 2)))
    for stage, count in enumerate(counts):
        filters = 64 << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            same = stride == 1 and x.shape[-1] == filters * wide
            shortcut = x if same else normalized(x, filters * wide, 1, stride)
            if wide > 1:
                y = layers.ReLU()(normalized(x, filters, 1))
                y = layers.ReLU()(normalized(y, filters, 3, stride))
                y = normalized(y, filters * wide, 1)
            else:
                y = normalized(layers.ReLU()(normalized(x, filters, 3, stride)), filters, 3)
            x = layers.ReLU()(layers.Add()([y, shortcut]))
    return tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def unet():
    def twice(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x

    inputs = x = tf.keras.Input((128, 128, 3))
    kept = []
    for filters in (32, 64, 128):
        x = twice(x, filters)
        kept.append(x)
        x = layers.MaxPool2D()(x)
    x = twice(x, 256)
    for filters in (128, 64, 32):
        x = layers.Conv2DTranspose(filters, 2, 2, use_bias=False)(x)
        x = twice(layers.Concatenate()([x, kept.pop()]), filters)
    return tf.keras.Model(inputs, layers.Flatten()(layers.Conv2D(1, 1)(x)))


def sentiment():
    return tf.keras.Sequential([
        layers.Embedding(rivals.WORDS, 512), layers.LSTM(512, return_sequences=True), layers.LSTM(512), layers.Dense(2)])


NETWORKS = {"resnet18": lambda: resnet(18), "resnet50": lambda: resnet(50), "unet": unet, "lstm2": sentiment}
