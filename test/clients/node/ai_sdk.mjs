// A session with the AI SDK: node ai_sdk.mjs BASE_URL MODEL
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, Output, streamText, tool } from "ai";

const [baseURL, name] = process.argv.slice(2);
const provider = createOpenAICompatible({ name: "llmc", baseURL, apiKey: "none", supportsStructuredOutputs: true });
const model = provider(name);
const prompt = "What is the capital of France?";
const greedy = { model, temperature: 0, maxOutputTokens: 100, maxRetries: 0 };

const whole = await generateText({ prompt, ...greedy });
assert.match(whole.text, /Paris/);
assert.equal(whole.finishReason, "stop");
assert.ok(whole.usage.outputTokens > 0);

let text = "";
for await (const piece of streamText({ prompt, ...greedy }).textStream) text += piece;
assert.equal(text, whole.text);

const schema = jsonSchema({
  type: "object",
  properties: { city: { type: "string", maxLength: 20 } },
  required: ["city"],
  additionalProperties: false,
});
const called = await generateText({
  prompt, tools: { weather: tool({ description: "The weather", inputSchema: schema }) }, toolChoice: "required", ...greedy,
});
assert.equal(called.toolCalls[0].toolName, "weather");
assert.equal(typeof called.toolCalls[0].input.city, "string");

const described = await generateText({ prompt, output: Output.object({ schema }), ...greedy });
assert.equal(typeof described.output.city, "string");

const text2 = await generateText({ ...greedy, model: provider.completionModel(name), prompt: "Once upon a time" });
assert.ok(text2.text.length > 10);
console.log("ok");
