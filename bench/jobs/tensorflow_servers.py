"""mnist-cnn on a cluster of TensorFlow 1 style, as a rival in speed: tensorflow_servers.py WORKERS STEPS MODE [DATA_DIRECTORY]

One parameter server and WORKERS workers of one thread each, processes of this machine; every worker takes batches
of 50 and runs STEPS steps. MODE is async (every gradient is applied as it comes) or sync (SyncReplicasOptimizer).
Prints the examples per second of all workers together.
"""
import multiprocessing
import os
import socket
import sys
import time

import numpy
import rivals

WARM = 10  # steps of each worker before the measurement
BATCH = 50


def images(directory):
    pixels, labels = (numpy.frombuffer(part, numpy.uint8) for part in rivals.mnist(directory))
    return pixels.reshape(-1, 28, 28, 1).astype(numpy.float32) / 255, labels.astype(numpy.int64)


def loss_of(tf, pixels, labels):
    def parameter(name, shape, initializer):
        return tf.get_variable(name, shape, initializer=initializer)

    weights, bias = tf.truncated_normal_initializer(stddev=0.1), tf.constant_initializer(0.1)
    hidden = pixels
    for number, (inputs, filters) in enumerate([(1, 32), (32, 64)], 1):
        kernel = parameter(f"kernel{number}", [5, 5, inputs, filters], weights)
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, 1, "SAME") + parameter(f"bias{number}", [filters], bias))
        hidden = tf.nn.max_pool(hidden, 2, 2, "SAME")
    hidden = tf.matmul(tf.reshape(hidden, [-1, 3136]), parameter("kernel3", [3136, 1024], weights))
    hidden = tf.nn.dropout(tf.nn.relu(hidden + parameter("bias3", [1024], bias)), rate=0.5)
    logits = tf.matmul(hidden, parameter("kernel4", [1024, 10], weights)) + parameter("bias4", [10], bias)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def take_part(role, task, ports, steps, mode, directory, rates):
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    workers = len(ports) - 1
    threads = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    cluster = tf.train.ClusterSpec({"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{p}" for p in ports[1:]]})
    server = tf.train.Server(cluster, job_name=role, task_index=task, config=threads)
    if role == "ps":
        server.join()
    inputs, classes = images(directory)
    hooks = []
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{task}", cluster=cluster)):
        pixels, labels = tf.placeholder(tf.float32, [None, 28, 28, 1]), tf.placeholder(tf.int64, [None])
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdamOptimizer(1e-4)
        if mode == "sync":
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks = [optimizer.make_session_run_hook(task == 0)]
        train = optimizer.minimize(loss_of(tf, pixels, labels), global_step=step)
    random = numpy.random.default_rng(task)
    with tf.train.MonitoredTrainingSession(server.target, is_root=task == 0, hooks=hooks) as session:
        for number in range(steps + WARM):
            if number == WARM:
                start = time.perf_counter()
            first = random.integers(len(inputs) - BATCH)
            session.run(train, {pixels: inputs[first:first + BATCH], labels: classes[first:first + BATCH]})
        rates.put(steps * BATCH / (time.perf_counter() - start))
        time.sleep(3600)  # the others are still working; the parent ends all


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main():
    workers, steps, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    directory = sys.argv[4] if len(sys.argv) > 4 else "data"
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    context = multiprocessing.get_context("spawn")
    rates, ports = context.Queue(), free_ports(workers + 1)
    roles = [("ps", 0)] + [("worker", task) for task in range(workers)]
    processes = [context.Process(target=take_part, args=(*role, ports, steps, mode, directory, rates), daemon=True)
                 for role in roles]
    for process in processes:
        process.start()
    print(f"{sum(rates.get(timeout=300) for _ in range(workers)):.1f}")
    for process in processes:
        process.kill()


if __name__ == "__main__":
    main()
