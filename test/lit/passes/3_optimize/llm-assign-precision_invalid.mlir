// RUN: llmc-opt %s --split-input-file --llm-assign-precision=weights=int4 --verify-diagnostics

// expected-error @+1 {{expected weights to be f32, bf16 or f16, found 'int4'; narrower types come with scales, from quantization}}
module {
}
