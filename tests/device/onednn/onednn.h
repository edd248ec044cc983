/* Comparisons of `ref` with oneDNN, by family; cmocka tests. */
#ifndef TESTS_DEVICE_ONEDNN_H
#define TESTS_DEVICE_ONEDNN_H

/* Chains of up to a thousand products of magnitude 1 differ between orders of summation by a few times
   2^-24 * sqrt(1000) relative to their largest partial sums, below 2e-5; a wrong term differs by 0.01. */
#define ONEDNN_TOLERANCE 2e-5

void onednn_dense(void **state);
void onednn_conv(void **state);
void onednn_max_pool(void **state);
void onednn_average_pool(void **state);
void onednn_activation(void **state);
void onednn_softmax(void **state);
void onednn_cross_entropy(void **state);
void onednn_layer_norm(void **state);
void onednn_batch_norm(void **state);
void onednn_lstm(void **state);

#endif
