#pragma once

namespace llmc {

// Builds that check themselves (CMake option LLMC_CHECKED: debug, asan, tsan):
// the KV cache's books after each step, and no KV block holds anything that
// could pass for the contents of a sequence before it is written.
#ifdef LLMC_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

} // namespace llmc
