/* Kernels of a toy model whose next token depends on every token before it,
 * read back from the KV cache: a wrong slot, block table, length or position
 * changes the output. Integers are stored as floats, so all arithmetic is
 * exact.
 *
 * K holds the position, V the token of each slot, both told apart by head. */
#include <stdint.h>
#ifdef TOY_STEP_MICROSECONDS
#include <unistd.h>
#endif

enum { HEADS = 2, BLOCK = 4, HEAD_DIM = 2, VOCAB = 64 };

static uint32_t mix(uint32_t h, uint32_t v) {
  h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
  h *= 0x85ebca6bu;
  return h ^ (h >> 13);
}

/* One tile: two rows. args: tokens, positions, slots, k, v, hidden, T */
void toy_append(const uint64_t *args, int64_t tile) {
  const int32_t *tokens = (const int32_t *)args[0],
                *positions = (const int32_t *)args[1],
                *slots = (const int32_t *)args[2];
  float *k = (float *)args[3], *v = (float *)args[4],
        *hidden = (float *)args[5];
  int32_t T = (int32_t)args[6];
  for (int32_t row = (int32_t)tile * 2; row < tile * 2 + 2 && row < T; ++row) {
    int32_t block = slots[row] / BLOCK, offset = slots[row] % BLOCK;
    for (int h = 0; h < HEADS; ++h) {
      for (int d = 0; d < HEAD_DIM; ++d)
        k[((block * HEADS + h) * BLOCK + offset) * HEAD_DIM + d] =
            (float)(positions[row] * 4 + h * 2 + d);
      v[(block * HEADS + h) * BLOCK + offset] = (float)(tokens[row] * 2 + h);
    }
    hidden[row] = (float)tokens[row];
  }
}

/* The same for single tokens, one row a tile: another range of the plan uses
 * it. */
void toy_append_one(const uint64_t *args, int64_t tile) {
  uint64_t shifted[7];
  for (int i = 0; i < 7; ++i)
    shifted[i] = args[i];
  shifted[0] += (uint64_t)tile * 4, shifted[1] += (uint64_t)tile * 4,
      shifted[2] += (uint64_t)tile * 4;
  shifted[5] += (uint64_t)tile * 4, shifted[6] = 1;
  toy_append(shifted, 0);
}

/* One tile: one logit row.
 * args: logit_rows, query_start, positions, kv_len, block_table, k, v, bias,
 * hidden, logits, S, B, scale (f32) */
void toy_logits(const uint64_t *args, int64_t tile) {
#ifdef TOY_STEP_MICROSECONDS
  if (tile == 0)
    usleep(TOY_STEP_MICROSECONDS);
#endif
  const int32_t *logit_rows = (const int32_t *)args[0],
                *query_start = (const int32_t *)args[1];
  const int32_t *positions = (const int32_t *)args[2],
                *kv_len = (const int32_t *)args[3],
                *table = (const int32_t *)args[4];
  const float *k = (const float *)args[5], *v = (const float *)args[6],
              *bias = (const float *)args[7];
  const float *hidden = (const float *)args[8];
  float *logits = (float *)args[9] + tile * VOCAB;
  int32_t S = (int32_t)args[10], B = (int32_t)args[11], row = logit_rows[tile],
          s = 0;
  union {
    uint32_t bits;
    float value;
  } scale = {(uint32_t)args[12]};
  while (s < S && query_start[s + 1] <= row)
    ++s;
  int32_t position = positions[row];
  uint32_t h = 1;
  if (kv_len[s] - (query_start[s + 1] - row) != position)
    h = mix(h, 77); /* wrong kv_len: poison the result */
  for (int32_t i = 0; i <= position; ++i) {
    int32_t block = table[s * B + i / BLOCK], offset = i % BLOCK;
    for (int head = 0; head < HEADS; ++head) {
      float key = k[((block * HEADS + head) * BLOCK + offset) * HEAD_DIM + 1];
      if (key != (float)(i * 4 + head * 2 + 1))
        h = mix(h, 12345u);
      h = mix(h, (uint32_t)v[(block * HEADS + head) * BLOCK + offset]);
    }
  }
  h = mix(h, (uint32_t)hidden[row]);
  for (uint32_t token = 0; token < VOCAB; ++token)
    logits[token] =
        (float)(mix(h, token * 2654435761u) >> 16) * scale.value + bias[token];
}

/* One tile: one logit row, greedy. args: logits, next_tokens */
void toy_sample(const uint64_t *args, int64_t tile) {
  const float *logits = (const float *)args[0] + tile * VOCAB;
  int32_t best = 0;
  for (int32_t token = 1; token < VOCAB; ++token)
    if (logits[token] > logits[best])
      best = token;
  ((int32_t *)args[1])[tile] = best;
}

/* For fake_cuda.cpp: a launch gets an array of parameter pointers without its
 * length. */
const int toy_append_num_params = 7, toy_append_one_num_params = 7,
          toy_logits_num_params = 13, toy_sample_num_params = 2;
