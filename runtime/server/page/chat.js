// The conversation: OpenAI's API with fetch, nothing else.
import { authorization, element } from "./page.js";

const messages = [];
let running = null; // AbortController of the answer that streams

async function loadModels() {
  const answer = await fetch("v1/models", { headers: authorization() });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error.message);
  const select = element("model");
  const chosen = select.value;
  select.replaceChildren(...body.data.map((model) => new Option(model.id, model.id)));
  if (body.data.some((model) => model.id === chosen)) select.value = chosen;
}

function show(role, text) {
  const article = element("message").content.cloneNode(true).firstElementChild;
  article.className = role;
  article.querySelector("h3").textContent = { user: "You", assistant: element("model").value, error: "Error" }[role];
  article.querySelector(".text").textContent = text;
  element("conversation").append(article);
  article.scrollIntoView({ block: "end" });
  return article;
}

// Yields the objects of server-sent events.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += value;
    const lines = held.split("\n");
    held = lines.pop();
    for (const line of lines) {
      if (line === "data: [DONE]") return;
      if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
    }
  }
}

function request() {
  const system = element("system").value.trim();
  const body = {
    model: element("model").value,
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    stream: true,
    stream_options: { include_usage: true },
  };
  for (const name of ["temperature", "max_tokens"]) {
    if (element(name).value !== "") body[name] = Number(element(name).value);
  }
  return body;
}

// Streams one answer into the page; returns its text.
async function answerInto(article, signal) {
  const started = performance.now();
  const headers = { "content-type": "application/json", ...authorization() };
  const answer = await fetch("v1/chat/completions", { method: "POST", headers, body: JSON.stringify(request()), signal });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  const text = article.querySelector(".text");
  const thoughts = article.querySelector(".reasoning");
  const list = element("conversation");
  let first = null;
  let content = "";
  for await (const event of events(answer.body)) {
    if (event.error) throw new Error(event.error.message);
    const delta = event.choices[0]?.delta ?? {};
    if (delta.reasoning_content) {
      thoughts.hidden = false;
      thoughts.querySelector("div").append(delta.reasoning_content);
    }
    if (delta.content) {
      content += delta.content;
      text.append(delta.content);
    }
    if (delta.content || delta.reasoning_content) first ??= performance.now();
    if (event.usage) article.querySelector("footer").textContent = summary(event.usage, started, first);
    if (list.scrollHeight - list.scrollTop - list.clientHeight < 200) list.scrollTop = list.scrollHeight;
  }
  return content;
}

function summary(usage, started, first) {
  const tokens = usage.completion_tokens;
  if (first === null) return `${tokens} tokens`;
  const seconds = (performance.now() - first) / 1000;
  const rate = tokens > 1 && seconds > 0 ? `, then ${((tokens - 1) / seconds).toFixed(1)} tokens/s` : "";
  return `${tokens} tokens: the first after ${((first - started) / 1000).toFixed(2)} s${rate}`;
}

async function ask(question) {
  messages.push({ role: "user", content: question });
  show("user", question);
  const article = show("assistant", "");
  running = new AbortController();
  busy(true);
  try {
    messages.push({ role: "assistant", content: await answerInto(article, running.signal) });
  } catch (error) {
    const shown = article.querySelector(".text").textContent;
    if (error.name === "AbortError" && shown) {
      messages.push({ role: "assistant", content: shown });
      article.querySelector("footer").textContent = "stopped";
    } else {
      messages.pop(); // the question can be asked again
      if (!shown) article.remove();
      if (error.name !== "AbortError") show("error", error.message);
    }
  } finally {
    running = null;
    busy(false);
    element("question").focus();
  }
}

function busy(is) {
  element("send").disabled = is;
  element("stop").disabled = !is;
  element("conversation").ariaBusy = is;
}

element("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = element("question").value.trim();
  if (!question || running) return;
  element("question").value = "";
  ask(question);
});
element("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    element("ask").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
});
element("stop").addEventListener("click", () => running?.abort());
element("clear").addEventListener("click", () => {
  running?.abort();
  messages.length = 0;
  element("conversation").replaceChildren();
  element("question").focus();
});
const tryModels = () => loadModels().catch((error) => show("error", error.message));
element("key").addEventListener("change", tryModels);
tryModels();
