// One turn of the conversation in the page: pictures, folded thinking, text, footer.
// Text of users and models enters the DOM as text nodes only (see markdown.js).

import { MarkdownStream, render_markdown } from "./markdown.js";

function box(name, class_name, text = "") {
  const node = document.createElement(name);
  node.className = class_name;
  node.textContent = text;
  return node;
}

function copy_button(text_of) {
  const button = box("button", "small", "Copy");
  button.type = "button";
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text_of());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copying is not allowed here";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  return button;
}

export function user_turn(turn) {
  const node = box("article", "turn user");
  node.setAttribute("aria-label", "You");
  if (turn.pictures.length) {
    const pictures = box("div", "pictures");
    turn.pictures.forEach((url, index) => {
      const image = document.createElement("img");
      image.src = url;
      image.alt = `Picture ${index + 1} of your message`;
      pictures.append(image);
    });
    node.append(pictures);
  }
  node.append(box("div", "plain", turn.text));
  return node;
}

// The view of an answer that may still grow. `turn` is kept up to date by the caller.
export class AnswerView {
  constructor(turn) {
    this.turn = turn;
    this.node = box("article", "turn assistant");
    this.node.setAttribute("aria-label", "Answer");
    this.answer = box("div", "answer");
    this.footer = document.createElement("footer");
    this.node.append(this.answer, this.footer);
    this.stream = new MarkdownStream(this.answer);
    this.shown = { reasoning: 0, text: 0 };
    this.is_scheduled = false;
  }

  // Draws what arrived since the last frame; many tokens cost one update.
  update() {
    if (this.is_scheduled) return;
    this.is_scheduled = true;
    requestAnimationFrame(() => {
      this.is_scheduled = false;
      this.draw();
    });
  }

  draw() {
    const { reasoning, text } = this.turn;
    if (reasoning.length > this.shown.reasoning) {
      if (!this.thinking) this.add_thinking();
      this.thinking.append(reasoning.slice(this.shown.reasoning));
      this.shown.reasoning = reasoning.length;
    }
    if (text.length > this.shown.text) {
      this.stream.push(text.slice(this.shown.text));
      this.shown.text = text.length;
    }
    this.answer.classList.toggle("waiting", !this.turn.is_done && !text);
  }

  add_thinking() {
    const details = box("details", "thinking");
    details.append(box("summary", "", "Thinking"));
    this.thinking = document.createElement("div");
    details.append(this.thinking);
    this.node.prepend(details);
  }

  // The last state: whole text rendered once more, footer with copy and figures, error if any.
  finish() {
    this.draw();
    render_markdown(this.answer, this.turn.text);
    this.answer.classList.remove("waiting");
    for (const pre of this.answer.querySelectorAll("pre")) {
      const code = box("div", "code");
      pre.replaceWith(code);
      code.append(pre, copy_button(() => pre.textContent));
    }
    if (this.turn.error) this.node.insertBefore(box("div", "error", this.turn.error), this.footer);
    if (this.turn.text) this.footer.append(copy_button(() => this.turn.text));
    if (this.turn.stats) this.footer.append(box("span", "stats", this.turn.stats));
  }
}
