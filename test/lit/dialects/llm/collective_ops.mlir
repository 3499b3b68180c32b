// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// Exchange between the ranks of a tensor-parallel group.

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<?x8xbf16>) {
  // CHECK: llm.all_reduce %{{.*}} {ranks = 4 : i64} : tensor<?x8xbf16> -> tensor<?x8xbf16>
  %0 = llm.all_reduce %x {ranks = 4 : i64} : tensor<?x8xbf16> -> tensor<?x8xbf16>
  // CHECK: llm.all_gather %{{.*}} {dim = 1 : i64, ranks = 4 : i64} : tensor<?x8xbf16> -> tensor<?x32xbf16>
  %1 = llm.all_gather %x {dim = 1 : i64, ranks = 4 : i64} : tensor<?x8xbf16> -> tensor<?x32xbf16>
  // CHECK: llm.reduce_scatter %{{.*}} {dim = 1 : i64, ranks = 4 : i64} : tensor<?x8xbf16> -> tensor<?x2xbf16>
  %2 = llm.reduce_scatter %x {dim = 1 : i64, ranks = 4 : i64} : tensor<?x8xbf16> -> tensor<?x2xbf16>
  return
}
