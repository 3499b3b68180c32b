// A session with OpenAI's client for Node: node openai.mjs BASE_URL MODEL
import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "What is the capital of France?" }];
const greedy = { model, temperature: 0, max_tokens: 24 };

const listed = await client.models.list();
assert.deepEqual(listed.data.map((one) => one.id), [model]);

const whole = await client.chat.completions.create({ messages, ...greedy });
assert.match(whole.choices[0].message.content, /Paris/);

let text = "";
let usage = null;
const stream = await client.chat.completions.create({
  messages, stream: true, stream_options: { include_usage: true }, ...greedy,
});
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(text, whole.choices[0].message.content);
assert.equal(usage.completion_tokens, whole.usage.completion_tokens);

const runner = client.chat.completions.stream({ messages, ...greedy });
assert.equal(await runner.finalContent(), text);

const likely = await client.chat.completions.create({ messages, logprobs: true, top_logprobs: 2, ...greedy });
assert.equal(likely.choices[0].logprobs.content[0].top_logprobs.length, 2);

const parameters = {
  type: "object",
  properties: { city: { type: "string", maxLength: 20 } },
  required: ["city"],
  additionalProperties: false,
};
const called = await client.chat.completions.create({
  messages, tools: [{ type: "function", function: { name: "weather", parameters } }],
  tool_choice: "required", model, temperature: 0, max_tokens: 100,
});
assert.equal(called.choices[0].finish_reason, "tool_calls");
assert.equal(typeof JSON.parse(called.choices[0].message.tool_calls[0].function.arguments).city, "string");

const response = await client.responses.create({ model, input: messages[0].content, temperature: 0, max_output_tokens: 24 });
assert.equal(response.output_text, text);
const events = client.responses.stream({ model, input: messages[0].content, temperature: 0, max_output_tokens: 24 });
let streamed = "";
events.on("response.output_text.delta", (event) => (streamed += event.delta));
assert.equal((await events.finalResponse()).output_text, text);
assert.equal(streamed, text);

await assert.rejects(client.chat.completions.create({ messages, ...greedy, model: "gpt-4o" }), OpenAI.NotFoundError);

const stopped = await client.chat.completions.create({ messages, stream: true, model, max_tokens: 1000, ignore_eos: true });
for await (const _ of stopped) break; // an early end closes the connection
console.log("ok");
