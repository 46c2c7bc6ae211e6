// Talks to the server's own OpenAI-compatible API; nothing here touches the page.

// An error in words a person can use; `status` 0 means that the server could not be reached.
export class ApiError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

const BROKEN = "The connection broke before the answer was complete.";
const PLAIN = {
  401: "The server wants an API key. Enter it below the message box and send again.",
  403: "The server does not accept requests from this page's address.",
  413: "That is more than the server takes in one message. Try a smaller picture.",
  429: "The server is busy with other questions. Wait a moment and send again.",
  503: "The model is not ready yet. Wait a moment and send again.",
};

async function error_of(response) {
  let detail = "";
  try {
    detail = (await response.json()).error.message;
  } catch {
    // The body is not ours; the status has to do.
  }
  const plain = PLAIN[response.status];
  if (plain) return new ApiError(plain, response.status);
  const text = detail || `The server answered with status ${response.status}.`;
  return new ApiError(text, response.status);
}

function headers(key) {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// The served model's id, or null when the server does not say.
export async function model_name(key) {
  const response = await fetch("v1/models", { headers: headers(key) });
  if (!response.ok) throw await error_of(response);
  const models = await response.json();
  return models.data?.[0]?.id ?? null;
}

// Yields the JSON payloads of an SSE body; comments are heartbeats and are dropped.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    let end;
    while ((end = buffer.indexOf("\n\n")) >= 0) {
      const event = buffer.slice(0, end);
      buffer = buffer.slice(end + 2);
      for (const line of event.split("\n")) {
        if (!line.startsWith("data: ")) continue;
        if (line === "data: [DONE]") return;
        yield JSON.parse(line.slice(6));
      }
    }
  }
}

// Streams one answer. on.reasoning(text) and on.content(text) get the pieces; resolves to
// { finish_reason, usage, timings }. Rejects with ApiError, or AbortError when `signal` fires.
export async function stream_answer({ messages, thinking, key, signal }, on) {
  let response;
  try {
    response = await fetch("v1/chat/completions", {
      method: "POST",
      signal,
      headers: { "Content-Type": "application/json", ...headers(key) },
      body: JSON.stringify({
        messages,
        stream: true,
        stream_options: { include_usage: true },
        thinking: { type: thinking ? "enabled" : "disabled" },
      }),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached. Is it still running?");
  }
  if (!response.ok) throw await error_of(response);
  const result = { finish_reason: null, usage: null, timings: null };
  try {
    for await (const chunk of events(response.body)) {
      if (chunk.error) throw new ApiError(chunk.error.message, 500);
      result.usage = chunk.usage ?? result.usage;
      result.timings = chunk.timings ?? result.timings;
      const choice = chunk.choices?.[0];
      if (!choice) continue;
      if (choice.delta?.reasoning_content) on.reasoning(choice.delta.reasoning_content);
      if (choice.delta?.content) on.content(choice.delta.content);
      result.finish_reason = choice.finish_reason ?? result.finish_reason;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError(BROKEN);
  }
  if (!result.finish_reason) throw new ApiError(BROKEN);
  return result;
}
