// Ops of the `tile` dialect, grouped by what they are about.
#ifndef LLMC_TILE_OPS_TD
#define LLMC_TILE_OPS_TD

include "dialects/tile/TileKernelOps.td"
include "dialects/tile/TileRingOps.td"
include "dialects/tile/TileMatrixOps.td"
include "dialects/tile/TileFragmentOps.td"
include "dialects/tile/TileBlockOps.td"
include "dialects/tile/TileNarrowOps.td"

#endif // LLMC_TILE_OPS_TD
