/* How the tokens of a request are chosen: part of llmc.h.
 *
 * The exact definition of each parameter is runtime/src/sampler.h; values out
 * of range are refused with the range. */
#ifndef LLMC_SAMPLING_H
#define LLMC_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Callbacks of a request. Both run on the executor thread between two steps of
 * the whole engine: they must return soon and must not call into the engine.
 * `tokens` is the prompt and the output so far. 0 is success; anything else
 * ends the request with an error. */

/* Bit t % 32 of mask[t / 32] says whether token t may come next; all bits are
 * set at the call. For grammars. The token is sampled wherever others are. */
typedef int32_t (*llmc_token_mask)(void *user, const int32_t *tokens,
                                   size_t num_tokens, size_t num_prompt_tokens,
                                   uint32_t *mask, size_t num_words);

/* Changes logits after all other rules, before temperature. Such a request
 * costs a copy of its logits to the host each step, where it is sampled. */
typedef int32_t (*llmc_logits_processor)(void *user, const int32_t *tokens,
                                         size_t num_tokens,
                                         size_t num_prompt_tokens,
                                         float *logits, size_t vocab_size);

/* Start from llmc_sampling_params_default(). */
typedef struct llmc_sampling_params {
  size_t struct_size; /* sizeof(llmc_sampling_params) of the caller's header;
                         set by llmc_sampling_params_default(). Fields are only
                         ever added at the end */
  int32_t max_tokens; /* >= 1; generation also ends at max_seq_len */
  int32_t min_tokens; /* 0 .. max_tokens; eos and stop tokens cannot come before
                         so many others */
  float temperature;  /* 0 = greedy */
  float top_p;        /* (0, 1]; 1 = off */
  float min_p;        /* [0, 1]; 0 = off */
  int32_t top_k;      /* 0 or -1 = off */
  int32_t has_seed; /* 0: a random seed is drawn when the request is accepted */
  uint64_t seed;    /* same seed, same tokens, whatever else is in the batch */
  int32_t ignore_eos; /* 1: eos tokens of the model do not end the request */
  const int32_t
      *stop_token_ids; /* end the request; the token is part of the output */
  size_t num_stop_token_ids;
  /* Logarithms of probabilities under the raw model, before all that is here.
   * -1: none. 0: those of the output's tokens. n: also the n largest. */
  int32_t logprobs;
  int32_t prompt_logprobs;  /* the same for the prompt's tokens, which are then
                               not taken from the cache; see
                               llmc_request_prompt_logprobs */
  float repetition_penalty; /* > 0, 1 = off; of tokens in prompt and output,
                               positive logits are divided by it, others
                               multiplied */
  float presence_penalty;   /* -2 .. 2; subtracted once for tokens in the output
                             */
  float frequency_penalty; /* -2 .. 2; subtracted for each time in the output */
  int32_t no_repeat_ngram_size;  /* n: no n tokens of prompt and output come
                                    twice; 0 = off */
  const int32_t *logit_bias_ids; /* each once */
  const float *logit_bias;       /* -100 .. 100, added */
  size_t num_logit_bias;
  const int32_t *bad_words; /* token sequences back to back that do not come in
                               the output; their lengths (>= 1) are beside */
  const size_t *bad_word_lengths;
  size_t num_bad_words;
  const int32_t *allowed_token_ids; /* nothing else comes; none = all */
  size_t num_allowed_token_ids;
  llmc_token_mask token_mask;             /* NULL = none */
  llmc_logits_processor logits_processor; /* NULL = none */
  void *callback_user; /* for these two; valid until the request has ended */
  /* How it is served. */
  int32_t priority; /* -100 .. 100, lower starts first; a request is overtaken
                       by at most 64 later ones for each step of difference */
  double timeout_seconds; /* ends with LLMC_FINISH_DEADLINE after this; 0 = no
                             deadline */
  uint64_t cache_salt;    /* KV blocks are shared among requests of equal salt
                             only, so that tenants cannot probe each other */
  int32_t retention_priority; /* 0 .. 100: of free KV blocks whose contents can
                                 be reused those of lower priority are given
                                 away first, and of these the least recently
                                 used; 35 by default */
  /* Beam search, the algorithm of transformers' num_beams. It chooses by the
   * sum of log probabilities: temperature, top_p, top_k, min_p and seed have no
   * part in it and must be at their defaults, callbacks and prompt_logprobs
   * must not be there; other rules on logits apply to log probabilities. */
  int32_t beam_width;   /* above 1: submit with llmc_engine_submit_forks and as
                           many requests, which are the answers, best first. All
                           tokens of an answer come at the end; a request
                           without any means that there were fewer answers */
  float length_penalty; /* answers are compared by the sum of log probabilities
                           divided by length to this power; 1 by default */
  int32_t early_stopping; /* when beam_width answers are there, the search ends:
                             0 = when none of the present length can be better,
                             1 = at once, 2 = when none of any length can be */
} llmc_sampling_params;

#ifdef __cplusplus
}
#endif
#endif
