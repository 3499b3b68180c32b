// The live view: what /stats says, once a second, and how it went over the last minutes.
import { authorization, element } from "./page.js";

const SECONDS = 120;
const FIGURES = [
  ["Tokens/s", (now, before, seconds) => (now.num_generated_tokens - before.num_generated_tokens) / seconds, (v) => v.toFixed(1)],
  ["Running", (now) => now.num_running, String],
  ["Waiting", (now) => now.num_waiting, String],
  ["KV cache used", (now) => (100 * now.blocks_used) / Math.max(now.blocks_total, 1), (v) => `${v.toFixed(1)} %`],
  ["A step takes", stepMilliseconds, (v) => `${v.toFixed(2)} ms`],
  ["Prompt found in the cache", reuse, (v) => `${v.toFixed(0)} %`],
];

function stepMilliseconds(now, before) {
  const steps = now.num_steps - before.num_steps;
  return steps ? (1000 * (now.step_seconds - before.step_seconds)) / steps : 0;
}

function reuse(now, before) {
  const asked = now.num_looked_up_tokens - before.num_looked_up_tokens;
  return asked ? (100 * (now.num_reused_tokens - before.num_reused_tokens)) / asked : 0;
}

const views = FIGURES.map(([name]) => {
  const view = element("figure").content.cloneNode(true).firstElementChild;
  view.querySelector("dt").textContent = name;
  element("figures").append(view);
  return { output: view.querySelector("output"), canvas: view.querySelector("canvas"), values: [] };
});

function draw(canvas, values) {
  const context = canvas.getContext("2d");
  const top = Math.max(...values, 1e-9);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.strokeStyle = getComputedStyle(canvas).color;
  context.beginPath();
  values.forEach((value, i) => {
    const x = canvas.width - 1 - (values.length - 1 - i) * (canvas.width / SECONDS);
    const y = canvas.height - 1 - (value / top) * (canvas.height - 4);
    if (i) context.lineTo(x, y);
    else context.moveTo(x, y);
  });
  context.stroke();
}

let before = null;
let last = performance.now();

async function look() {
  const health = element("health");
  try {
    const answer = await fetch("stats", { headers: authorization() });
    const body = await answer.json();
    if (!answer.ok) throw new Error(answer.status === 401 ? "needs an API key (Settings)" : body.error.message);
    const now = body[element("model").value] ?? Object.values(body)[0];
    const seconds = (performance.now() - last) / 1000;
    last = performance.now();
    if (before) {
      FIGURES.forEach(([, value, text], i) => {
        const found = value(now, before, seconds);
        const { output, canvas, values } = views[i];
        values.push(found);
        if (values.length > SECONDS) values.shift();
        output.textContent = text(found);
        draw(canvas, values);
      });
    }
    before = now;
    const sick = now.health !== "";
    health.textContent = sick ? now.health : "ready";
    health.classList.toggle("bad", sick);
  } catch (error) {
    health.textContent = error instanceof TypeError ? "no answer from the server" : error.message;
    health.classList.add("bad");
    before = null;
  }
}

element("model").addEventListener("change", () => {
  before = null;
  views.forEach((view) => view.values.splice(0));
});
look();
setInterval(() => document.hidden || look(), 1000);
