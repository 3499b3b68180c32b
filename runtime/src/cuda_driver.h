#pragma once
// The CUDA driver API as far as the runtime uses it, loaded with dlopen.
// Declared here, so that building needs no CUDA.

#include <cstddef>
#include <cstdint>
#include <string>

namespace llmc::cuda {

using Result = int; // CUresult; 0 is success
inline constexpr Result kNotFound = 500, kNotReady = 600;
using Device = int;
using DevicePtr = unsigned long long;
struct ContextOpaque;
struct ModuleOpaque;
struct FunctionOpaque;
struct StreamOpaque;
struct EventOpaque;
struct GraphOpaque;
struct GraphExecOpaque;
using Context = ContextOpaque *;
using Module = ModuleOpaque *;
using Function = FunctionOpaque *;
using Stream = StreamOpaque *;
using Event = EventOpaque *;
using Graph = GraphOpaque *;
using GraphExec = GraphExecOpaque *;

enum DeviceAttribute {
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};
enum FunctionAttribute {
  kMaxDynamicSharedSize = 8,
  kNonPortableClusterSizeAllowed = 14
};
enum StreamFlags { kStreamNonBlocking = 1 };
enum StreamCaptureMode { kStreamCaptureThreadLocal = 1 };
enum EventFlags { kEventDisableTiming = 2 };
enum LaunchAttributeId {
  kClusterDimension = 4,
  kProgrammaticStreamSerialization = 6
};

struct LaunchAttribute {
  LaunchAttributeId id;
  char pad[8 - sizeof(LaunchAttributeId)];
  union Value {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic_stream_serialization;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned num_attributes;
};

// CUtensorMapDataType, of which only the element size matters without filling.
enum TensorMapType {
  kMapU8 = 0,
  kMapI32 = 3,
  kMapU64 = 4,
  kMapI64 = 5,
  kMapF16 = 6,
  kMapF32 = 7,
  kMapBF16 = 9
};

// Every entry point with its exported name (the _v2 forms are what cuda.h's
// macros expand to).
#define LLMC_CUDA_FUNCTIONS(X)                                                 \
  X(Result, cuInit, (unsigned flags))                                          \
  X(Result, cuDriverGetVersion, (int *version))                                \
  X(Result, cuGetErrorName, (Result error, const char **text))                 \
  X(Result, cuGetErrorString, (Result error, const char **text))               \
  X(Result, cuDeviceGetCount, (int *count))                                    \
  X(Result, cuDeviceGet, (Device * device, int ordinal))                       \
  X(Result, cuDeviceGetName, (char *name, int size, Device device))            \
  X(Result, cuDeviceGetAttribute, (int *value, int attribute, Device device))  \
  X(Result, cuDevicePrimaryCtxRetain, (Context * context, Device device))      \
  X(Result, cuDevicePrimaryCtxRelease_v2, (Device device))                     \
  X(Result, cuCtxSetCurrent, (Context context))                                \
  X(Result, cuMemGetInfo_v2, (size_t *free, size_t *total))                    \
  X(Result, cuMemAlloc_v2, (DevicePtr * address, size_t bytes))                \
  X(Result, cuMemFree_v2, (DevicePtr address))                                 \
  X(Result, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))    \
  X(Result, cuMemFreeHost, (void *address))                                    \
  X(Result, cuMemsetD8Async,                                                   \
    (DevicePtr address, unsigned char value, size_t bytes, Stream stream))     \
  X(Result, cuMemcpyHtoDAsync_v2,                                              \
    (DevicePtr target, const void *source, size_t bytes, Stream stream))       \
  X(Result, cuMemcpyDtoHAsync_v2,                                              \
    (void *target, DevicePtr source, size_t bytes, Stream stream))             \
  X(Result, cuMemcpyDtoDAsync_v2,                                              \
    (DevicePtr target, DevicePtr source, size_t bytes, Stream stream))         \
  X(Result, cuStreamCreate, (Stream * stream, unsigned flags))                 \
  X(Result, cuStreamSynchronize, (Stream stream))                              \
  X(Result, cuStreamQuery, (Stream stream))                                    \
  X(Result, cuStreamDestroy_v2, (Stream stream))                               \
  X(Result, cuEventCreate, (Event * event, unsigned flags))                    \
  X(Result, cuEventRecord, (Event event, Stream stream))                       \
  X(Result, cuEventQuery, (Event event))                                       \
  X(Result, cuEventSynchronize, (Event event))                                 \
  X(Result, cuEventElapsedTime, (float *milliseconds, Event start, Event end)) \
  X(Result, cuEventDestroy_v2, (Event event))                                  \
  X(Result, cuModuleLoadData, (Module * module, const void *image))            \
  X(Result, cuModuleUnload, (Module module))                                   \
  X(Result, cuModuleGetFunction,                                               \
    (Function * function, Module module, const char *name))                    \
  X(Result, cuFuncSetAttribute, (Function function, int attribute, int value)) \
  X(Result, cuLaunchKernelEx,                                                  \
    (const LaunchConfig *config, Function function, void **params,             \
     void **extra))                                                            \
  X(Result, cuStreamBeginCapture_v2, (Stream stream, int mode))                \
  X(Result, cuStreamEndCapture, (Stream stream, Graph * graph))                \
  X(Result, cuGraphInstantiateWithFlags,                                       \
    (GraphExec * executable, Graph graph, unsigned long long flags))           \
  X(Result, cuGraphLaunch, (GraphExec executable, Stream stream))              \
  X(Result, cuGraphExecDestroy, (GraphExec executable))                        \
  X(Result, cuGraphDestroy, (Graph graph))                                     \
  X(Result, cuTensorMapEncodeTiled,                                            \
    (void *map, int type, unsigned rank, void *address, const uint64_t *shape, \
     const uint64_t *strides, const uint32_t *box,                             \
     const uint32_t *element_strides, int interleave, int swizzle,             \
     int l2_promotion, int fill))

struct Driver {
#define LLMC_CUDA_MEMBER(result, name, parameters)                             \
  result(*name) parameters = nullptr;
  LLMC_CUDA_FUNCTIONS(LLMC_CUDA_MEMBER)
#undef LLMC_CUDA_MEMBER

  // Loads `library`; empty: $LLMC_CUDA_LIBRARY, else libcuda.so.1. Throws
  // LLMC_UNSUPPORTED when there is no driver or it is too old to have a
  // function.
  static const Driver load(const std::string &library);

  // Throws LLMC_DEVICE_ERROR: "<what>: CUDA_ERROR_... (text)".
  void check(Result result, const std::string &what) const;
  std::string error_text(Result result) const;
};

} // namespace llmc::cuda
