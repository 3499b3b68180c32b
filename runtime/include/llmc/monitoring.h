/* What operators ask a loaded engine beside its statistics. The rules of llmc.h
 * hold here. */
#ifndef LLMC_MONITORING_H
#define LLMC_MONITORING_H

#include "llmc/llmc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* LLMC_OK while requests can be served. Otherwise the kind of failure, and
 * llmc_last_error() has the reason: the device is lost and the engine must be
 * loaded again, it has not moved for stall_seconds, or its last steps failed.
 */
LLMC_API llmc_status llmc_engine_check_health(const llmc_engine *engine);

typedef enum llmc_metric {
  LLMC_METRIC_QUEUE = 0,       /* from submit to the first step of a request */
  LLMC_METRIC_FIRST_TOKEN = 1, /* from submit to its first token */
  LLMC_METRIC_INTER_TOKEN = 2, /* from token to token */
  LLMC_METRIC_STEP = 3,        /* a step: on the device, or of a host engine */
  LLMC_METRIC_HOST = 4, /* the host's work for a step beside the device's:
                           schedule, inputs, launch, sample, hand out. With
                           overlap the device computes meanwhile */
  LLMC_NUM_METRICS = 5
} llmc_metric;

#define LLMC_MAX_HISTOGRAM_BUCKETS 128

/* Since load. Bucket i counts what was below bounds[i] and not below
 * bounds[i - 1]; the first also all that was less, the last all that was more.
 */
typedef struct llmc_histogram {
  const char *name; /* "queue_seconds", ...; static, as bounds */
  int32_t num_buckets;
  const double *bounds; /* seconds, ascending */
  uint64_t counts[LLMC_MAX_HISTOGRAM_BUCKETS];
  double sum; /* seconds, of all */
} llmc_histogram;

LLMC_API llmc_status llmc_engine_get_histogram(const llmc_engine *engine,
                                               llmc_metric metric,
                                               llmc_histogram *out);

#ifdef __cplusplus
}
#endif
#endif
