// RUN: llmc-opt %s --llm-merge-projections=glu-block=0 --verify-diagnostics

// expected-error @+1 {{expected glu-block to be 1 or more, found 0; it is the number of gate columns that lie side by side}}
module {
}
