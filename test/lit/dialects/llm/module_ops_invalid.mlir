// RUN: llmc-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{expected a static shape, got 'tensor<?x4xf32>'}}
llm.parameter @w : tensor<?x4xf32> from #llm.source<"w">

// -----

// expected-error @below {{expected a recipe (`from`) or a value (`=`)}}
llm.parameter @w : tensor<8x4xf32>

// -----

// expected-error @below {{has both a recipe and a value; expected one of them}}
llm.parameter @w : tensor<2xf32> from #llm.source<"w"> = dense<1.0> : tensor<2xf32>

// -----

// expected-error @below {{expected a weight recipe such as #llm.source<...>, got "w"}}
llm.parameter @w : tensor<2xf32> from "w"

// -----

// expected-error @below {{expected a value of type 'tensor<2xf32>', got 'tensor<3xf32>'}}
llm.parameter @w : tensor<2xf32> = dense<1.0> : tensor<3xf32>

// -----

// expected-error @below {{expected a layout such as #llm.panels<...>, got "rows"}}
llm.parameter @w : tensor<8x4xf32> from #llm.source<"w"> layout "rows"

// -----

// expected-error @below {{expected a layout on a parameter of rank 2, got 'tensor<8xf32>'}}
llm.parameter @w : tensor<8xf32> from #llm.source<"w"> layout #llm.panels<rows = 4, group = 1>

// -----

func.func @step() {
  // expected-error @below {{expected a declared llm.parameter, found no @w}}
  %w = llm.weight @w : tensor<8x4xf32>
  return
}

// -----

llm.parameter @w : tensor<8x4xbf16> from #llm.source<"w">
func.func @step() {
  // expected-error @below {{reads @w as 'tensor<8x4xf32>', but it is declared as 'tensor<8x4xbf16>'}}
  %w = llm.weight @w : tensor<8x4xf32>
  return
}

// -----

func.func @step(%x: tensor<?x4xf32>) {
  // expected-error @below {{successor operand type #0 'tensor<?x4xf32>' should match successor input type #0 'tensor<?x4xbf16>'}}
  %y = llm.group "elementwise" -> tensor<?x4xbf16> {
    // expected-note @below {{region branch point}}
    llm.yield %x : tensor<?x4xf32>
  }
  return
}

// -----

// expected-error @below {{yields 'tensor<?x4xf32>', but returns 'tensor<?x4xbf16>'}}
llm.kernel @k(%x: tensor<?x4xf32>) -> tensor<?x4xbf16> attributes {anchor = "elementwise"} {
  llm.yield %x : tensor<?x4xf32>
}

// -----

// expected-error @below {{expected a workspace of 0 or more bytes, got -8}}
llm.kernel @k() attributes {anchor = "elementwise", workspace = -8 : i64} {
  llm.yield
}

// -----

// expected-error @below {{entry block must have 1 arguments to match function signature}}
"llm.kernel"() <{anchor = "elementwise", function_type = (tensor<?x4xf32>) -> (), sym_name = "k"}> ({
  "llm.yield"() : () -> ()
}) : () -> ()

// -----

// The body must end in llm.yield, also in the generic form.
// expected-error @below {{expects regions to end with 'llm.yield', found 'llvm.unreachable'}}
"llm.kernel"() <{anchor = "elementwise", function_type = () -> (), sym_name = "k"}> ({
  // expected-note @above {{in custom textual format, the absence of terminator implies 'llm.yield'}}
  "llvm.unreachable"() : () -> ()
}) : () -> ()

// -----

func.func @step(%x: tensor<?x4xf32>) {
  // expected-error @below {{expects parent op to be one of 'llm.group, llm.kernel'}}
  llm.yield %x : tensor<?x4xf32>
}

// -----

func.func @step() {
  // expected-error @below {{expected an llm.kernel, found no @k}}
  llm.launch @k() : () -> ()
  return
}

// -----

llm.kernel @k(%x: tensor<?x4xf32>) attributes {anchor = "elementwise"} {
  llm.yield
}
func.func @step(%x: tensor<?x8xf32>) {
  // expected-error @below {{launches @k as '(tensor<?x8xf32>) -> ()', but it is '(tensor<?x4xf32>) -> ()'}}
  llm.launch @k(%x) : (tensor<?x8xf32>) -> ()
  return
}

// -----

// The plan that launches carry.
llm.kernel @k(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>) -> tensor<?x4xf32> attributes {anchor = "elementwise"} {
  llm.yield %x : tensor<?x4xf32>
}
func.func @too_few_offsets(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>) {
  // expected-error @below {{expected one arena offset for each of 1 results, got 0}}
  %0 = llm.launch @k(%x, %y) {offsets = array<i64>} : (tensor<?x4xf32>, tensor<?x4xbf16>) -> tensor<?x4xf32>
  return
}
func.func @half_a_pair(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>) {
  // expected-error @below {{expected `tied` to hold (result, operand) pairs}}
  %0 = llm.launch @k(%x, %y) {tied = array<i64: 0>} : (tensor<?x4xf32>, tensor<?x4xbf16>) -> tensor<?x4xf32>
  return
}
func.func @no_such_operand(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>) {
  // expected-error @below {{ties result 0 to operand 2, but there are 1 results and 2 operands}}
  %0 = llm.launch @k(%x, %y) {tied = array<i64: 0, 2>} : (tensor<?x4xf32>, tensor<?x4xbf16>) -> tensor<?x4xf32>
  return
}
func.func @other_type(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>) {
  // expected-error @below {{ties result 0 of type 'tensor<?x4xf32>' to operand 1 of type 'tensor<?x4xbf16>'}}
  %0 = llm.launch @k(%x, %y) {tied = array<i64: 0, 1>} : (tensor<?x4xf32>, tensor<?x4xbf16>) -> tensor<?x4xf32>
  return
}
func.func @twice(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>) {
  // expected-error @below {{ties result 0 or operand 0 twice}}
  %0 = llm.launch @k(%x, %y) {tied = array<i64: 0, 0, 0, 0>} : (tensor<?x4xf32>, tensor<?x4xbf16>) -> tensor<?x4xf32>
  return
}
