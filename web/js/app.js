// The chat page: wires the composer, the conversation and the API together.

import { ApiError, model_name, stream_answer } from "./api.js";
import { PictureTray } from "./pictures.js";
import { load_turns, save_turns } from "./store.js";
import { AnswerView, user_turn } from "./turn_view.js";

const SUGGESTIONS = ["What is in this picture?", "List the shapes.", "What is 27 + 48?",
  "What are you?", "How do you run such a large model on a home computer?"];

const $ = (id) => document.getElementById(id);
let turns = []; // [{ role, text, reasoning, pictures, stats, error, is_done }]
let running = null; // AbortController of the answer in progress

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

const tray = new PictureTray($("attachments"), notice);

// --- conversation --------------------------------------------------------------------------------

function is_at_end() {
  const view = $("drop-zone");
  return view.scrollHeight - view.scrollTop - view.clientHeight < 80;
}

function scroll_to_end() {
  $("drop-zone").scrollTop = $("drop-zone").scrollHeight;
}

function show_turn(turn) {
  if (turn.role === "user") {
    $("log").append(user_turn(turn));
    return null;
  }
  const view = new AnswerView(turn);
  $("log").append(view.node);
  return view;
}

function show_all() {
  $("log").replaceChildren();
  for (const turn of turns) show_turn(turn)?.finish();
  $("welcome").hidden = turns.length > 0;
  scroll_to_end();
}

// The conversation as the API takes it; turns that failed without text are left out.
function api_messages() {
  return turns.filter((turn) => turn.role === "user" || turn.text).map((turn) => {
    if (turn.role === "assistant") return { role: "assistant", content: turn.text };
    if (!turn.pictures.length) return { role: "user", content: turn.text };
    const pictures = turn.pictures.map((url) => ({ type: "image_url", image_url: { url } }));
    return { role: "user", content: [...pictures, { type: "text", text: turn.text }] };
  });
}

function describe({ usage, timings, finish_reason }) {
  const parts = [];
  if (usage) parts.push(`${usage.prompt_tokens} tokens read, ${usage.completion_tokens} written`);
  const rate = timings?.predicted_per_second;
  if (rate) parts.push(`${rate.toFixed(1)} tokens/s`);
  const steps = (timings?.predicted_n ?? 0) - (timings?.draft_n_accepted ?? 0);
  if (timings?.draft_n_accepted && steps > 0)
    parts.push(`${(timings.predicted_n / steps).toFixed(1)} tokens a step`);
  if (timings?.prompt_ms) parts.push(`first after ${(timings.prompt_ms / 1000).toFixed(2)} s`);
  if (finish_reason === "length") parts.push("cut off at the length limit");
  return parts.join(" · ");
}

function explain(error) {
  if (error.name === "AbortError") return "";
  if (error.status === 401) $("key-label").hidden = false;
  if (error instanceof ApiError) return error.message;
  return `Something went wrong in this page: ${error.message}`;
}

function set_running(controller) {
  running = controller;
  $("send").hidden = Boolean(controller);
  $("stop").hidden = !controller;
}

async function answer() {
  const turn = { role: "assistant", text: "", reasoning: "", pictures: [], stats: "", error: "" };
  const messages = api_messages();
  turns.push(turn);
  const view = show_turn(turn);
  view.draw();
  scroll_to_end();
  const grow = (field) => (text) => {
    const follow = is_at_end();
    turn[field] += text;
    view.update();
    if (follow) requestAnimationFrame(scroll_to_end);
  };
  set_running(new AbortController());
  try {
    const result = await stream_answer(
      { messages, thinking: $("think").checked, key: $("key").value, signal: running.signal },
      { reasoning: grow("reasoning"), content: grow("text") });
    turn.stats = describe(result);
  } catch (error) {
    turn.error = explain(error);
    if (error.name === "AbortError") turn.stats = "stopped";
  }
  turn.is_done = true;
  set_running(null);
  const follow = is_at_end();
  view.finish();
  if (follow) scroll_to_end();
  $("announce").textContent = turn.error || turn.text;
  await save_turns(turns);
}

async function send(text) {
  if (running || (!text.trim() && !tray.pictures.length)) return;
  notice("");
  const turn = { role: "user", text, reasoning: "", pictures: tray.take(), is_done: true };
  turns.push(turn);
  show_turn(turn);
  $("welcome").hidden = true;
  $("prompt").value = "";
  fit_prompt();
  await save_turns(turns);
  await answer();
}

async function new_chat() {
  running?.abort();
  turns = [];
  tray.take();
  notice("");
  show_all();
  await save_turns(turns);
  $("prompt").focus();
}

// --- controls ------------------------------------------------------------------------------------

function fit_prompt() {
  const area = $("prompt");
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

function set_up_composer() {
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send($("prompt").value);
  });
  $("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send($("prompt").value);
    }
  });
  $("prompt").addEventListener("input", fit_prompt);
  $("stop").addEventListener("click", () => running?.abort());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") running?.abort();
  });
  $("new-chat").addEventListener("click", new_chat);
  $("suggestions").append(...SUGGESTIONS.map((text) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.onclick = () => {
      $("prompt").value = text;
      $("prompt").focus();
    };
    return button;
  }));
}

function set_up_pictures() {
  $("attach").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", async () => {
    await tray.add([...$("file").files]);
    $("file").value = "";
    $("prompt").focus();
  });
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (files.length) {
      event.preventDefault();
      tray.add(files);
    }
  });
  // Dropping anywhere counts; without preventDefault the browser would leave the page.
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    $("drop-hint").hidden = !event.dataTransfer.types.includes("Files");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) $("drop-hint").hidden = true;
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop-hint").hidden = true;
    tray.add([...event.dataTransfer.files]);
    $("prompt").focus();
  });
}

function set_up_theme() {
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
  };
  apply(localStorage.getItem("theme"));
  $("theme").addEventListener("click", () => {
    const chosen = document.documentElement.dataset.theme;
    const is_dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = is_dark ? "light" : "dark";
    localStorage.setItem("theme", theme);
    apply(theme);
  });
}

async function start() {
  set_up_composer();
  set_up_pictures();
  set_up_theme();
  turns = await load_turns();
  show_all();
  $("prompt").focus();
  try {
    $("model").textContent = (await model_name($("key").value)) ?? "";
  } catch (error) {
    notice(explain(error));
  }
}

start();
