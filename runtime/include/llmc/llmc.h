/* The C API of the llmc runtime.
 *
 * Load an engine, submit token ids, read tokens as they come. No function
 * throws, all may be called from any thread, and every function that can fail
 * returns an llmc_status; llmc_last_error() then has the message of the calling
 * thread's last failure: what was expected, what was found and what to do.
 *
 * Ownership: a pointer returned through an `out` argument belongs to the caller
 * and goes back through the matching llmc_*_free. Structs passed in are read
 * during the call only. Text is UTF-8.
 *
 * Structs that callers fill carry defaults: start from llmc_*_default(), so
 * that a field added later keeps its meaning.
 */
#ifndef LLMC_LLMC_H
#define LLMC_LLMC_H

#include "llmc/sampling.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define LLMC_API
#else
#define LLMC_API __attribute__((visibility("default")))
#endif

typedef enum llmc_status {
  LLMC_OK = 0,
  LLMC_INVALID_ARGUMENT = 1, /* the caller passed something out of range */
  LLMC_NOT_FOUND =
      2, /* a file of the engine does not exist or cannot be read */
  LLMC_BAD_ENGINE = 3, /* damaged, truncated or inconsistent engine */
  LLMC_UNSUPPORTED =
      4,             /* engine of another format version, architecture or CPU */
  LLMC_STRIPPED = 5, /* the engine has no weights yet: run `llmc refit` */
  LLMC_OUT_OF_MEMORY =
      6, /* weights, arena and KV pool do not fit; only while loading */
  LLMC_REFUSED = 7, /* admission: the request can never run on this engine; the
                       message has the numbers */
  LLMC_DEVICE_ERROR = 8, /* the device or its driver failed; the message names
                            the error and the kernel */
  LLMC_TIMEOUT = 9,      /* nothing arrived in the given time; not a failure */
  LLMC_SHUT_DOWN = 10,   /* the engine is closing */
  LLMC_INTERNAL = 11     /* a bug in llmc */
} llmc_status;

/* Message of the calling thread's last failed call; valid until its next
 * failing call. Never NULL. */
LLMC_API const char *llmc_last_error(void);
LLMC_API const char *llmc_status_name(llmc_status status);
LLMC_API const char *llmc_version(void);

typedef struct llmc_engine llmc_engine;
typedef struct llmc_request llmc_request;

/* ---- Engine
 * -------------------------------------------------------------------------------------------------
 */

typedef enum llmc_policy {
  LLMC_GUARANTEED_NO_EVICT = 0, /* a request starts only when its worst case
                                   fits beside everybody else's */
  LLMC_MAX_UTILIZATION = 1,     /* requests start when their prompt fits; the
                                   last one gives its blocks up when the pool is
                                   full: to host memory, or to be computed
                                   again */
  LLMC_STATIC_BATCH = 2         /* requests start together when none runs, and
                                   nobody joins them (for comparisons) */
} llmc_policy;

typedef enum llmc_verify {
  LLMC_VERIFY_AUTO = 0, /* hash the weights when they are smaller than 1 GiB */
  LLMC_VERIFY_ALWAYS = 1,
  LLMC_VERIFY_NEVER = 2 /* sizes and small parts are checked all the same */
} llmc_verify;

typedef struct llmc_engine_options {
  int32_t num_threads;     /* host target: 0 = physical cores available to the
                              process */
  int32_t device;          /* GPU target: ordinal */
  int64_t kv_cache_tokens; /* size of the KV pool in tokens; 0 = see
                              kv_cache_bytes */
  int64_t kv_cache_bytes;  /* size of the KV pool in bytes; 0 = see
                              free_memory_fraction */
  double free_memory_fraction; /* share of the memory free after weights and
                                  arena that the KV pool may take; 0 = 0.9 on a
                                  GPU, 0.5 on the host. Never more than all
                                  sequences at full length need */
  int32_t
      max_batch_size; /* 0 = the engine's limit; a smaller value narrows it */
  int32_t max_num_tokens; /* 0 = the engine's limit; tokens of one step, prefill
                             and decode together */
  llmc_policy policy;
  llmc_verify verify_weights;
  const char *cuda_library; /* GPU target: driver library to load; NULL =
                               $LLMC_CUDA_LIBRARY or libcuda.so.1 */
  int32_t cuda_graphs; /* GPU target: 1 (the default) replays decode steps as
                          CUDA graphs, 0 launches each kernel by itself */
  int32_t enable_block_reuse; /* 1 (the default): KV blocks of equal beginnings
                                 are shared and kept until others need them */
  int32_t enable_partial_reuse; /* 1 (the default): a block whose beginning is
                                   the same is copied; needs
                                   enable_block_reuse */
  int64_t host_memory_bytes;    /* where preempted requests keep their KV blocks
                                   instead of computing them again; needs
                                   LLMC_MAX_UTILIZATION. When it is full they are
                                   computed again. 0 = none */
  int32_t overlap; /* 1 (the default): a step is prepared and started while the
                      one before runs, where the device samples; 0: not before
                      its tokens are known. Tokens are the same */
  double stall_seconds;   /* when a step does not end for so long its requests
                             fail and health says so; 0 = 60 on a GPU, 600 on the
                             host; negative = never */
  const char *trace_file; /* each step is written there in Chrome's trace event
                             format, replacing the file; NULL = none */
  int32_t max_waiting;    /* requests that may wait before further ones are
                             refused; 0 = no limit */
} llmc_engine_options;

LLMC_API llmc_engine_options llmc_engine_options_default(void);

/* Loads the engine folder (or .llmc archive) at `path` and starts its executor
 * thread. All memory is taken here. */
LLMC_API llmc_status llmc_engine_load(const char *path,
                                      const llmc_engine_options *options,
                                      llmc_engine **out);

/* Cancels what is running, joins the executor and releases everything. Requests
 * of the engine stay valid handles. */
LLMC_API void llmc_engine_free(llmc_engine *engine);

typedef struct llmc_engine_info {
  int32_t vocab_size;
  int32_t max_batch_size; /* in force, after options */
  int32_t max_num_tokens; /* in force, after options */
  int32_t max_seq_len;    /* prompt + generated tokens of one sequence */
  int32_t max_logit_rows; /* logit rows of one step */
  int32_t block_size;     /* tokens of one KV block */
  int32_t num_blocks;  /* KV blocks that sequences can use (block 0 excluded) */
  int32_t num_threads; /* host target; 0 on a GPU */
  int64_t weight_bytes;
  int64_t arena_bytes;
  int64_t kv_cache_bytes;
  int32_t bos_token_id; /* -1: none */
  int32_t num_eos_token_ids;
  const int32_t *eos_token_ids; /* owned by the engine */
  const char
      *target; /* "host", "sm_90"; owned by the engine, as the next two */
  const char *architecture;
  const char *model_name;
} llmc_engine_info;

LLMC_API llmc_status llmc_engine_get_info(const llmc_engine *engine,
                                          llmc_engine_info *out);

typedef struct llmc_engine_stats {
  int64_t num_running; /* requests with KV blocks */
  int64_t num_waiting; /* requests without */
  int64_t blocks_used;
  int64_t blocks_total;
  int64_t num_steps;         /* plan executions since load */
  int64_t num_prompt_tokens; /* tokens computed in prefill, recomputation
                                included */
  int64_t num_generated_tokens;
  int64_t num_preemptions;
  double step_seconds;    /* time in plan executions since load */
  double sample_seconds;  /* time in host sampling since load */
  double host_seconds;    /* the host's work for steps beside the device's, see
                             LLMC_METRIC_HOST; with overlap the device computes
                             meanwhile */
  int64_t num_graphs;     /* decode steps recorded as CUDA graphs */
  int64_t graph_launches; /* steps that were replayed from one */
  int64_t blocks_idle;    /* free blocks whose contents can be reused */
  int64_t num_evictions;  /* idle blocks that were given to others */
  int64_t num_looked_up_tokens; /* of requests that started or resumed */
  int64_t num_reused_tokens;    /* of these, found in the cache */
  int64_t num_deadlines_missed;
  int64_t num_failed_steps;
  int64_t consecutive_failed_steps; /* 0: the last step was computed; a device
                                       that is lost fails every one */
  int64_t num_host_sampled; /* tokens of an engine that samples on the device
                               which the host sampled: for a logits_processor,
                               or when a request's rules had no room in the
                               step inputs */
  int64_t num_partially_reused_tokens; /* of num_reused_tokens, in copies of
                                          parts of blocks */
  int64_t num_forks; /* requests that began with the blocks of another one of
                        their prompt, and beams that went on with another's */
  int64_t host_blocks_used; /* of preempted requests */
  int64_t host_blocks_total;
  int64_t num_blocks_swapped_out; /* to host memory since load */
  int64_t num_blocks_swapped_in;  /* from there */
} llmc_engine_stats;

LLMC_API llmc_status llmc_engine_get_stats(const llmc_engine *engine,
                                           llmc_engine_stats *out);

/* ---- Generation
 * ----------------------------------------------------------------------------------------------
 */

LLMC_API llmc_sampling_params llmc_sampling_params_default(void);

typedef enum llmc_finish {
  LLMC_RUNNING = 0,
  LLMC_FINISH_STOP = 1, /* eos or a stop token: the last token of the output */
  LLMC_FINISH_LENGTH = 2, /* max_tokens or max_seq_len */
  LLMC_FINISH_CANCELLED = 3,
  LLMC_FINISH_ERROR = 4,   /* llmc_request_next returned the error */
  LLMC_FINISH_DEADLINE = 5 /* timeout_seconds passed */
} llmc_finish;

typedef struct llmc_logprob {
  int32_t id;
  float logprob;
} llmc_logprob;

typedef struct llmc_token {
  int32_t id;
  float logprob; /* 0 unless asked for */
  /* The largest of its place, descending; none unless asked for. Valid during
   * the callback, or until the next call of llmc_request_next for the request.
   */
  const llmc_logprob *top_logprobs;
  size_t num_top_logprobs;
} llmc_token;

/* Called on the executor thread when tokens are ready or the request ended. It
 * must return soon and must not call into the engine except
 * llmc_request_cancel. */
typedef void (*llmc_token_callback)(void *user, const llmc_token *tokens,
                                    size_t num_tokens, llmc_finish finish);

/* Queues a request. LLMC_REFUSED when it could never run: empty prompt, token
 * id outside the vocabulary, prompt longer than max_seq_len - 1, more KV blocks
 * than the pool has. `callback` may be NULL: read with llmc_request_next then.
 */
LLMC_API llmc_status llmc_engine_submit(llmc_engine *engine,
                                        const int32_t *prompt,
                                        size_t prompt_length,
                                        const llmc_sampling_params *params,
                                        llmc_token_callback callback,
                                        void *user, llmc_request **out);

/* Queues `num_requests` requests for one prompt, all of them or none: the
 * prompt is computed once, and they share its KV blocks; what else they do, and
 * how they end, is their own. params, users and out have one element for each
 * (users may be NULL); all have the same cache_salt. With prompt_logprobs a
 * request computes the prompt by itself. With a beam_width above 1, which is
 * num_requests and in all params the same as everything else, they are the
 * answers of one beam search: a cancel of any ends all, and the priority is
 * that of the first. Otherwise like llmc_engine_submit. */
LLMC_API llmc_status llmc_engine_submit_forks(
    llmc_engine *engine, const int32_t *prompt, size_t prompt_length,
    const llmc_sampling_params *params, size_t num_requests,
    llmc_token_callback callback, void *const *users, llmc_request **out);

/* Waits until tokens are ready, the request ended, or `timeout_seconds` passed
 * (negative: no limit; LLMC_TIMEOUT). Writes up to `capacity` tokens in order,
 * each exactly once. `*finish` is set to the reason when all tokens were read.
 * After the end further calls return LLMC_OK, no tokens and the same reason. A
 * failed request returns its error. */
LLMC_API llmc_status llmc_request_next(llmc_request *request,
                                       llmc_token *tokens, size_t capacity,
                                       double timeout_seconds,
                                       size_t *num_tokens, llmc_finish *finish);

/* Of a request with prompt_logprobs: the prompt's tokens, each under the tokens
 * before it; the first has 0 and no largest. None before the first token of the
 * output has come. Valid as long as the request. */
LLMC_API llmc_status llmc_request_prompt_logprobs(const llmc_request *request,
                                                  const llmc_token **tokens,
                                                  size_t *num_tokens);

/* Ends the request before the next step; its KV blocks are free by then.
 * Harmless after the end. */
LLMC_API void llmc_request_cancel(llmc_request *request);

/* Moves the request among those that wait, before the next step. Harmless after
 * the end. */
LLMC_API llmc_status llmc_request_set_priority(llmc_request *request,
                                               int32_t priority);

/* Prompt tokens whose K and V were found in the cache when the request started;
 * -1 while it waits. */
LLMC_API int32_t llmc_request_reused_tokens(const llmc_request *request);

/* Cancels the request if it still runs and releases the handle. */
LLMC_API void llmc_request_free(llmc_request *request);

/* ---- Teacher-forced scoring
 * ----------------------------------------------------------------------------------
 */

/* Runs `num_sequences` token sequences through the paged, chunked path and
 * copies logits. tokens: all sequences back to back; lengths:
 * i32[num_sequences]. rows: positions (in their own sequence, ascending) whose
 * logits are wanted, back to back; num_rows: how many for each sequence. Both
 * NULL: every position. logits: f32 [total rows, vocab_size]; `logits_size` is
 * its length in floats. chunk_tokens: tokens of one step; 0 = max_num_tokens.
 * Runs between steps of the generation traffic; waits while that holds too many
 * blocks. */
LLMC_API llmc_status llmc_engine_forward(
    llmc_engine *engine, const int32_t *tokens, const int32_t *lengths,
    size_t num_sequences, const int32_t *rows, const int32_t *num_rows,
    int32_t chunk_tokens, float *logits, size_t logits_size);

/* ---- Profiles
 * ------------------------------------------------------------------------------------------------
 */

/* An engine that is loaded to be timed: it serves no requests. One thread at a
 * time. */
typedef struct llmc_profiler llmc_profiler;

LLMC_API llmc_status llmc_profiler_load(const char *path,
                                        const llmc_engine_options *options,
                                        llmc_profiler **out);
LLMC_API void llmc_profiler_free(llmc_profiler *profiler);

/* Bytes per second, read and written together, at which the device copies its
 * own memory; 0 when it has no room for the buffers. */
LLMC_API llmc_status llmc_profiler_bandwidth(llmc_profiler *profiler,
                                             double *bytes_per_second);

typedef struct llmc_kernel_time {
  const char *name; /* of the plan's kernel; owned by the profiler */
  int32_t num_launches;
  double seconds;       /* of all its launches in the step, back to back */
  double chain_seconds; /* by which the step is longer for them: less than
                           `seconds` where others run meanwhile */
} llmc_kernel_time;

/* Times a step of `num_sequences` sequences that each compute `num_tokens`
 * tokens behind context - num_tokens cached ones (decode: num_tokens = 1), and
 * each of its kernels; medians of `repeats`. Times are the device's, without
 * the host's work between steps. `*kernels` is valid until the next call. */
LLMC_API llmc_status llmc_profiler_step(llmc_profiler *profiler,
                                        int32_t num_sequences,
                                        int32_t num_tokens, int32_t context,
                                        int32_t repeats, double *step_seconds,
                                        const llmc_kernel_time **kernels,
                                        size_t *num_kernels);

#ifdef __cplusplus
}
#endif
#endif
