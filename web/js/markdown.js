// Markdown to DOM nodes. Text of a model is hostile: nodes are made with createElement and
// textContent only, links go to http(s) and mailto only, and pictures are never loaded.
// What is not understood stays readable as text.

const DEPTH_MAX = 8; // nested quotes, lists and emphasis; deeper is shown as text
const INLINE_MAX = 20000; // characters of one paragraph that are searched for emphasis and links

function element(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

function safe_href(target) {
  try {
    const url = new URL(target);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null; // relative and broken targets stay text
  }
}

function link(label, target) {
  const href = safe_href(target);
  if (!href) return null;
  const node = element("a", label);
  node.href = href;
  node.rel = "noopener noreferrer nofollow";
  node.target = "_blank";
  return node;
}

// Inline forms; each is anchored by the sticky flag and bounded, so that a scan stays linear.
const INLINE = [
  [/(`{1,3})([^`]{1,2000}?)\1(?!`)/y, (m) => element("code", m[2].trim() || m[2])],
  [/!?\[([^\[\]\n]{0,500})\]\(<?([^()\s<>]{1,2000})>?(?:\s+"[^"\n]{0,200}")?\)/y, (m) =>
    link(m[1] || m[2], m[2])],
  [/<(https?:\/\/[^\s<>]{1,2000})>/y, (m) => link(m[1], m[1])],
  [/https?:\/\/[^\s<>()*`"']{1,2000}[^\s<>()*`"'.,;:!?]/y, (m) => link(m[0], m[0])],
  [/\*\*(?=\S)([^*\n]{1,1000}?)\*\*/y, (m, depth) => element("strong", ...inline(m[1], depth + 1))],
  [/\*(?=\S)([^*\n]{1,1000}?)\*/y, (m, depth) => element("em", ...inline(m[1], depth + 1))],
  [/~~(?=\S)([^~\n]{1,1000}?)~~/y, (m, depth) => element("del", ...inline(m[1], depth + 1))],
  [/\\([\\`*_{}\[\]()#+\-.!~>|])/y, (m) => document.createTextNode(m[1])],
];
const INLINE_START = /[`!\[<h*~\\]/g;

export function inline(text, depth = 0) {
  if (depth > DEPTH_MAX || text.length > INLINE_MAX) return [text];
  const nodes = [];
  let from = 0;
  let at = 0;
  while (at < text.length) {
    INLINE_START.lastIndex = at;
    const start = INLINE_START.exec(text);
    if (!start) break;
    at = start.index;
    let made = null;
    for (const [pattern, make] of INLINE) {
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      made = match && make(match, depth);
      if (made) {
        nodes.push(text.slice(from, at), made);
        at = from = at + match[0].length;
        break;
      }
    }
    if (!made) at += 1;
  }
  nodes.push(text.slice(from));
  return nodes.filter((node) => node !== "");
}

function with_breaks(lines) {
  const nodes = inline(lines.join("\n"));
  return nodes.flatMap((node) =>
    typeof node !== "string" ? [node]
      : node.split("\n").flatMap((part, index) => (index ? [element("br"), part] : [part])));
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,30})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,12})(?:([-*+])|(\d{1,9})[.)])\s+/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function code_block(text, language) {
  const code = element("code", text);
  if (language) code.dataset.language = language;
  return element("pre", code);
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((c) => c.trim());
  const row = (line, name) => element("tr", ...cells(line).map((c) => element(name, ...inline(c))));
  const node = element("table", element("thead", row(lines[0], "th")),
    element("tbody", ...lines.slice(2).map((line) => row(line, "td"))));
  const box = element("div", node);
  box.className = "table";
  return box;
}

function list(lines, depth) {
  const first = ITEM.exec(lines[0]);
  const node = element(first[3] ? "ol" : "ul");
  if (first[3] && Number(first[3]) !== 1) node.start = Number(first[3]);
  let item = [];
  const flush = () => {
    if (item.length) node.append(element("li", ...tight(blocks(item, depth + 1))));
    item = [];
  };
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match && match[1].length <= first[1].length + 1) {
      flush();
      item.push(line.slice(match[0].length));
    } else {
      item.push(line.replace(/^ {1,4}/, ""));
    }
  }
  flush();
  return node;
}

// A list item of one paragraph is shown without the paragraph's margins.
function tight(nodes) {
  if (nodes[0]?.nodeName !== "P") return nodes;
  return [...nodes[0].childNodes, ...nodes.slice(1)];
}

function take_while(lines, from, keep) {
  let to = from;
  while (to < lines.length && keep(lines[to], to)) to += 1;
  return to;
}

function blocks(lines, depth) {
  if (depth > DEPTH_MAX) return [element("p", ...with_breaks(lines))];
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const start = at;
    let match;
    if (!line.trim()) {
      at += 1;
    } else if ((match = FENCE.exec(line))) {
      const close = new RegExp(`^ {0,3}${match[1][0]}{${match[1].length},}\\s*$`);
      at = take_while(lines, at + 1, (text) => !close.test(text));
      nodes.push(code_block(lines.slice(start + 1, at).join("\n"), match[2]));
      at += 1;
    } else if ((match = HEADING.exec(line))) {
      nodes.push(element(`h${Math.min(match[1].length + 1, 6)}`, ...inline(match[2])));
      at += 1;
    } else if (RULE.test(line)) {
      nodes.push(element("hr"));
      at += 1;
    } else if (QUOTE.test(line)) {
      at = take_while(lines, at, (text) => QUOTE.test(text));
      const inner = lines.slice(start, at).map((text) => text.replace(QUOTE, ""));
      nodes.push(element("blockquote", ...blocks(inner, depth + 1)));
    } else if (ITEM.test(line)) {
      const belongs = (text = "") => ITEM.test(text) || /^ {2,}\S/.test(text);
      at = take_while(lines, at, (text, i) =>
        belongs(text) || (!text.trim() && belongs(lines[i + 1])));
      nodes.push(list(lines.slice(start, at), depth));
    } else if (line.includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1])) {
      at = take_while(lines, at, (text) => text.includes("|"));
      nodes.push(table(lines.slice(start, at)));
    } else {
      const starts_block = (text) => [FENCE, HEADING, QUOTE, ITEM].some((form) => form.test(text));
      at = take_while(lines, at + 1, (text) => text.trim() && !starts_block(text));
      nodes.push(element("p", ...with_breaks(lines.slice(start, at))));
    }
  }
  return nodes;
}

// Renders the whole text. `parent` loses its children.
export function render_markdown(parent, text) {
  parent.replaceChildren(...blocks(text.split(/\r?\n/), 0));
}

// Renders a growing text: what stands before the last blank line outside a code fence is done
// once, only the tail is made again, so a long answer costs the same per token as a short one.
export class MarkdownStream {
  constructor(parent) {
    this.parent = parent;
    this.text = "";
    this.done_chars = 0;
    this.tail_nodes = [];
  }

  // Appends `delta` and updates the DOM.
  push(delta) {
    this.text += delta;
    const tail = this.text.slice(this.done_chars);
    for (const node of this.tail_nodes) node.remove();
    const cut = stable_prefix(tail);
    if (cut > 0) this.parent.append(...blocks(tail.slice(0, cut).split(/\r?\n/), 0));
    this.done_chars += cut;
    this.tail_nodes = blocks(tail.slice(cut).split(/\r?\n/), 0);
    this.parent.append(...this.tail_nodes);
  }
}

// Characters of `text` up to its last blank line that ends a block for sure.
function stable_prefix(text) {
  let fence = null;
  let cut = 0;
  let offset = 0;
  let previous = "";
  for (const line of text.split("\n")) {
    const match = FENCE.exec(line);
    if (match && !fence) fence = match[1];
    else if (match && line.trim().startsWith(fence) && !match[2]) fence = null;
    offset += line.length + 1;
    const in_list = ITEM.test(previous) || /^ {2,}\S/.test(previous);
    if (!fence && !line.trim() && !in_list && offset <= text.length) cut = offset;
    if (line.trim()) previous = line;
  }
  return cut;
}
