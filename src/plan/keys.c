/* What the cost of each operation depends on: its arguments up to a member, the rows of its cut where it has
 * one, and the rows of its sequences where it has those. An operation that is missing does not compile.
 */
#include "plan/costs.h"

#include <assert.h>
#include <string.h>

/* The arguments from the first member up to `end` are sizes. Without a cut the first of them, an int64_t, is
   the size of the call and the others are its shape; with a cut the size is that of the cut, and all are
   shape. With an offset the first of them are examples, and the size is their rows. */
struct key_form {
    size_t end, cut, offset; /* where they lie; cut, offset: 0: there is none */
    bool products;           /* all sizes are int64_t, and operations go with their product */
};

#define AT(op, member) offsetof(struct tr_op_##op, member)
/* clang-format off */
#define KEY_dense_forward           {AT(dense_forward, x), .products = true}
#define KEY_dense_backward_data     {AT(dense_backward_data, dy), .products = true}
#define KEY_dense_backward_weights  {AT(dense_backward_weights, x), AT(dense_backward_weights, cut), .products = true}
#define KEY_conv_forward            {AT(conv_forward, x)}
#define KEY_conv_backward_data      {AT(conv_backward_data, dy)}
#define KEY_conv_backward_weights   {AT(conv_backward_weights, x), AT(conv_backward_weights, cut)}
#define KEY_winograd_forward        {AT(winograd_forward, conv.x)}
#define KEY_winograd_backward_data  {AT(winograd_backward_data, conv.dy)}
#define KEY_winograd_backward_weights {AT(winograd_backward_weights, conv.x), AT(winograd_backward_weights, conv.cut)}
#define KEY_activation_forward      {AT(activation_forward, x)}
#define KEY_activation_backward     {AT(activation_backward, x)}
#define KEY_add                     {AT(add, a)}
#define KEY_join_columns            {AT(join_columns, x)}
#define KEY_split_columns           {AT(split_columns, x)}
#define KEY_scale                   {AT(scale, factor)}
#define KEY_fill                    {AT(fill, value)}
#define KEY_dropout                 {AT(dropout, offset), .offset = AT(dropout, offset)}
#define KEY_pool_forward            {AT(pool_forward, kind)}
#define KEY_pool_backward           {AT(pool_backward, kind)}
#define KEY_pool_rows_forward       {AT(pool_rows_forward, offset), .offset = AT(pool_rows_forward, offset)}
#define KEY_pool_rows_backward      {AT(pool_rows_backward, offset), .offset = AT(pool_rows_backward, offset)}
#define KEY_softmax_forward         {AT(softmax_forward, x)}
#define KEY_softmax_backward        {AT(softmax_backward, y)}
#define KEY_layer_norm_forward      {AT(layer_norm_forward, epsilon)}
#define KEY_layer_norm_backward     {AT(layer_norm_backward, x), AT(layer_norm_backward, cut)}
#define KEY_rms_norm_forward        {AT(rms_norm_forward, epsilon)}
#define KEY_rms_norm_backward       {AT(rms_norm_backward, x), AT(rms_norm_backward, cut)}
#define KEY_batch_norm_forward      {AT(batch_norm_forward, global_rows), AT(batch_norm_forward, cut)}
#define KEY_batch_norm_backward     {AT(batch_norm_backward, x), AT(batch_norm_backward, cut)}
#define KEY_batch_norm_infer        {AT(batch_norm_infer, epsilon)}
#define KEY_batch_norm_activation_forward {AT(batch_norm_activation_forward, norm.global_rows), AT(batch_norm_activation_forward, norm.cut)}
#define KEY_batch_norm_activation_backward {AT(batch_norm_activation_backward, norm.x), AT(batch_norm_activation_backward, norm.cut)}
#define KEY_winograd_backward       {AT(winograd_backward, weights.conv.x), AT(winograd_backward, weights.conv.cut)}
#define KEY_conv_pool_forward       {AT(conv_pool_forward, conv.x)}
#define KEY_conv_pool_backward_data {AT(conv_pool_backward_data, conv.dy)}
#define KEY_conv_pool_backward_weights {AT(conv_pool_backward_weights, conv.x), AT(conv_pool_backward_weights, conv.cut)}
#define KEY_dense_gelu_forward      {AT(dense_gelu_forward, dense.x), .products = true}
#define KEY_dense_gelu_backward_data {AT(dense_gelu_backward_data, dense.dy), .products = true}
#define KEY_dense_backward_update   {AT(dense_backward_update, weights.x), AT(dense_backward_update, weights.cut), true}
#define KEY_embedding_forward       {AT(embedding_forward, token)}
#define KEY_embedding_backward      {AT(embedding_backward, token), AT(embedding_backward, cut)}
#define KEY_lstm_forward            {AT(lstm_forward, offset), .offset = AT(lstm_forward, offset)}
#define KEY_lstm_backward           {AT(lstm_backward, truncate), .offset = AT(lstm_backward, offset)}
#define KEY_lstm_backward_weights   {AT(lstm_backward_weights, offset), .offset = AT(lstm_backward_weights, offset)}
#define KEY_sequence_last_forward   {AT(sequence_last_forward, offset), .offset = AT(sequence_last_forward, offset)}
#define KEY_sequence_last_backward  {AT(sequence_last_backward, offset), .offset = AT(sequence_last_backward, offset)}
#define KEY_sequence_unfold         {AT(sequence_unfold, offset), .offset = AT(sequence_unfold, offset)}
#define KEY_sequence_fold           {AT(sequence_fold, offset), .offset = AT(sequence_fold, offset)}
#define KEY_sequence_copy           {AT(sequence_copy, reverse), .offset = AT(sequence_copy, offset)}
#define KEY_gru_forward             {AT(gru_forward, offset), .offset = AT(gru_forward, offset)}
#define KEY_gru_backward            {AT(gru_backward, offset), .offset = AT(gru_backward, offset)}
#define KEY_gru_backward_weights    {AT(gru_backward_weights, offset), .offset = AT(gru_backward_weights, offset)}
#define KEY_attention_forward       {AT(attention_forward, at.causal), .offset = AT(attention_forward, at.offset)}
#define KEY_attention_backward      {AT(attention_backward, at.causal), .offset = AT(attention_backward, at.offset)}
#define KEY_position_forward        {AT(position_forward, offset), .offset = AT(position_forward, offset)}
#define KEY_position_backward       {AT(position_backward, offset), AT(position_backward, cut)}
#define KEY_rotary                  {AT(rotary, base), .offset = AT(rotary, offset)}
#define KEY_softmax_cross_entropy   {AT(softmax_cross_entropy, smoothing)}
#define KEY_mean_squared_error      {AT(mean_squared_error, scale)}
#define KEY_binary_cross_entropy    {AT(binary_cross_entropy, scale)}
#define KEY_huber_error             {AT(huber_error, delta)}
#define KEY_weigh_rows              {AT(weigh_rows, weight)}
#define KEY_to_labels               {AT(to_labels, x)}
#define KEY_sum_rows                {AT(sum_rows, x), AT(sum_rows, cut)}
#define KEY_load_images             {AT(load_images, random)}
#define KEY_gather_rows             {AT(gather_rows, index)}
#define KEY_update                  {AT(update, rule)}
#define KEY_sum_squares             {AT(sum_squares, x)}
#define KEY_clip_scale              {AT(clip_scale, max_norm)}
#define KEY_hold                    {AT(hold, x)}
/* clang-format on */
#define KEY(op) [TR_COST_##op] = KEY_##op,
static const struct key_form form[TR_COST_OPS] = {TR_DEVICE_OPS(KEY)};
#undef KEY
#undef AT

static int64_t word_at(const void *arguments, size_t offset)
{
    int64_t word;
    memcpy(&word, (const char *)arguments + offset, sizeof word);
    return word;
}

static int64_t size_of(const struct key_form *key, const void *arguments, bool reads_rows)
{
    const int64_t first = word_at(arguments, 0);
    if (key->cut) {
        struct tr_cut cut;
        memcpy(&cut, (const char *)arguments + key->cut, sizeof cut);
        return cut.row[cut.count];
    }
    if (!key->offset || !reads_rows) return first;
    const int32_t *offset;
    memcpy(&offset, (const char *)arguments + key->offset, sizeof offset);
    const int64_t rows = offset ? (int64_t)offset[first] - offset[0] : 0;
    return rows > 0 ? rows : first;
}

void tr_cost_key_of(enum tr_cost_op op, const void *arguments, bool reads_rows, struct tr_cost_key *out)
{
    const struct key_form *key = &form[op];
    const size_t begin = key->cut ? 0 : sizeof out->size;
    memset(out, 0, sizeof *out);
    out->op = op;
    out->size = size_of(key, arguments, reads_rows);
    assert(key->end >= begin && key->end - begin <= TR_COST_SHAPE);
    out->bytes = (int)(key->end - begin);
    memcpy(out->shape, (const char *)arguments + begin, (size_t)out->bytes);
    if (!key->products) return;
    out->volume = 1;
    for (size_t at = begin; at < key->end; at += sizeof(int64_t)) {
        int64_t word = word_at(arguments, at);
        if (word > 0) out->volume *= (double)word; /* without inputs only a bias is summed */
    }
}
