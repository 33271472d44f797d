// Runs in the frame, before and after bertviz. bertviz draws; this hands it its parameters, sizes
// the drawing, adds a keyboard, and says in numbers what the lines show.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

// --- what bertviz expects to find -------------------------------------------------------------
// bertviz asks an AMD loader for its two libraries; they are in this document already.
const require = { config() {} };
const requirejs = (names, draw) => draw(window.jQuery, window.d3);
console.log = () => {};  // bertviz reports coordinates; a page's console should stay clean

const unpack = () => {
  const [L, H, T] = data.shape;
  let at = 0;
  const take = (n, inner) => Array.from({ length: n }, inner);
  return take(L, () => take(H, () => take(T, () => take(T, () => data.weights[at++] / 1000))));
};
const attention = unpack();

const slices = () => {
  const b = data.sentence_b_start, n = data.tokens.length;
  const all = { name: "All", left: [0, n], right: [0, n] };
  if (b === undefined || b === null) return [all];
  const A = [0, b], B = [b, n];
  return [
    all,
    { name: "Sentence A → Sentence A", left: A, right: A },
    { name: "Sentence B → Sentence B", left: B, right: B },
    { name: "Sentence A → Sentence B", left: A, right: B },
    { name: "Sentence B → Sentence A", left: B, right: A },
  ];
};
const parts = slices();
const bertologyParams = {
  attention: parts.map(({ name, left, right }) => ({
    name,
    attn: attention.map((layer) =>
      layer.map((head) => head.slice(...left).map((row) => row.slice(...right)))),
    left_text: data.tokens.slice(...left),
    right_text: data.tokens.slice(...right),
  })),
  default_filter: "0",
  root_div_id: "root",
  layer: data.layer,
  heads: data.lit,
  include_layers: data.layers,
  include_heads: data.heads,
  total_heads: data.across,
  display_mode: "light",  // colours come from the style sheet, for either theme
};

const root = document.getElementById("root");
const said = document.getElementById("said");
const bar = [];
if (data.view === "head_view") bar.push('<label>Layer <select id="layer"></select></label>');
if (parts.length > 1) {
  const options = parts.map((part, i) => `<option value="${i}">${part.name}</option>`).join("");
  bar.push(`<label>Attention <select id="filter">${options}</select></label>`);
}
root.innerHTML = (bar.length ? `<div id="bar">${bar.join("")}</div>` : "") + '<div id="vis"></div>';
const vis = document.getElementById("vis");
const IDLE = data.view === "head_view"
  ? "Point at a token, or reach it with Tab and the arrow keys. Coloured squares switch heads: " +
    "click for one, double-click (or Enter) for that one alone."
  : "Click a head, or reach it with Tab, the arrow keys and Enter, to enlarge it; again to close it.";

// --- small helpers ------------------------------------------------------------------------------
const all = (selector, from = vis) => [...from.querySelectorAll(selector)];
const fire = (node, type) => node.dispatchEvent(new MouseEvent(type, { bubbles: type !== "mouseleave" }));
const percent = (weight) => (weight >= 0.005 ? Math.round(weight * 100) : "<1") + "%";
const top3 = (pairs) => pairs.sort((a, b) => b[1] - a[1]).slice(0, 3)
  .map(([token, weight]) => `${token} ${percent(weight)}`).join(" · ");
const attribute = (node, values) => Object.entries(values).forEach(([k, v]) => node.setAttribute(k, v));

// One tab stop for a group of nodes; arrow keys move inside it.
function keyboard(nodes, columns, onKey) {
  nodes.forEach((node, index) => {
    node.setAttribute("tabindex", index === 0 ? "0" : "-1");
    node.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      if (step !== undefined) {
        const next = nodes[index + step];
        if (next) {
          node.setAttribute("tabindex", "-1");
          next.setAttribute("tabindex", "0");
          next.focus();
        }
        event.preventDefault();
      } else if (onKey && (event.key === "Enter" || event.key === " ")) {
        onKey(node, index, event.key);
        event.preventDefault();
      }
    });
  });
}

// --- head view ----------------------------------------------------------------------------------
function litHeads() {
  return all('rect[role="checkbox"]').flatMap((box, head) => (box.__data__ ? [head] : []));
}

function sayToken(isLeft, index) {
  const filter = document.getElementById("filter");
  const part = bertologyParams.attention[filter ? +filter.value : 0];
  const chosen = +document.getElementById("layer").value;
  const layer = part.attn[data.layers.indexOf(chosen)];
  const heads = litHeads();
  const others = isLeft ? part.right_text : part.left_text;
  const mean = (j) => heads.reduce(
    (sum, h) => sum + (isLeft ? layer[h][index][j] : layer[h][j][index]), 0) / heads.length;
  const own = (isLeft ? part.left_text : part.right_text)[index];
  const which = heads.length === 1 ? `head ${heads[0]}` : `mean of ${heads.length} heads`;
  said.textContent = `${own} ${isLeft ? "attends to" : "is attended to by"}: ` +
    `${top3(others.map((token, j) => [token, mean(j)]))} (layer ${chosen}, ${which})`;
}

function finishHeadView(svg) {
  attribute(svg, { role: "group", "aria-label": "tokens and attention lines" });
  const boxes = [...svg.lastElementChild.children];
  const numbers = boxes.map((box, head) => {
    attribute(box, { role: "checkbox", "aria-label": `head ${head}` });
    const number = document.createElementNS("http://www.w3.org/2000/svg", "text");
    attribute(number, { x: +box.getAttribute("x") + 10, y: 14.5, class: "head-number", "aria-hidden": "true" });
    number.textContent = head;
    svg.append(number);
    return number;
  });
  // bertviz keeps the state of a square as the data bound to it.
  const sync = () => boxes.forEach((box, head) => {
    const lit = Boolean(box.__data__);
    box.setAttribute("aria-checked", String(lit));
    numbers[head].classList.toggle("off", !lit);
  });
  for (const type of ["click", "dblclick"]) boxes.forEach((box) => box.addEventListener(type, sync));
  sync();
  keyboard(boxes, boxes.length, (box, _, key) => fire(box, key === "Enter" ? "dblclick" : "click"));
  for (const side of ["left", "right"]) {
    const column = svg.querySelector("#" + side);
    const tokens = all("text", column).map((text) => text.parentNode);
    tokens.forEach((token, index) => {
      attribute(token, {
        role: "button",
        "aria-label": `${token.textContent}, ${side === "left" ? "attending" : "attended to"}`,
      });
      token.addEventListener("mouseover", () => sayToken(side === "left", index));
      token.addEventListener("focus", () => fire(token, "mouseover"));
      token.addEventListener("blur", () => fire(column, "mouseleave"));
    });
    column.addEventListener("mouseleave", () => { said.textContent = IDLE; });
    keyboard(tokens, 1);
  }
}

// --- model view ---------------------------------------------------------------------------------
function sayHead(row, column) {
  const head = attention[row][column], n = data.tokens.length;
  const received = data.tokens.map((token, j) => [token, head.reduce((sum, r) => sum + r[j], 0) / n]);
  said.textContent = `Layer ${data.layers[row]}, head ${data.heads[column]} ` +
    `attends on average to: ${top3(received)}`;
}

function finishModelView(svg) {
  attribute(svg, { role: "group", "aria-label": "heads of every layer" });
  svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  const nHeads = data.heads.length;
  const regions = all(".attn_background").map((back) => back.parentNode.lastElementChild);
  regions.forEach((region, index) => {
    const row = Math.floor(index / nHeads), column = index % nHeads;
    attribute(region, {
      role: "button",
      "aria-label": `layer ${data.layers[row]}, head ${data.heads[column]}`,
    });
    for (const type of ["mouseover", "focus"]) region.addEventListener(type, () => sayHead(row, column));
  });
  keyboard(regions, nHeads, (region) => fire(region, "click"));
}

// --- after bertviz ------------------------------------------------------------------------------
function report() {
  const height = Math.ceil(document.body.getBoundingClientRect().height);
  parent.postMessage({ bertologyHeight: height }, "*");
}

function finish() {
  const svg = vis.querySelector("svg");
  if (!svg || svg.dataset.finished) return;
  svg.dataset.finished = "true";
  said.textContent = IDLE;
  (data.view === "head_view" ? finishHeadView : finishModelView)(svg);
}

window.addEventListener("message", (event) => {
  if (event.source === parent && event.data && ["light", "dark"].includes(event.data.theme)) {
    document.documentElement.dataset.theme = event.data.theme;
  }
});

function bertologyDrawn() {
  finish();
  // Another layer or filter makes bertviz draw anew.
  new MutationObserver(finish).observe(vis, { childList: true });
  new ResizeObserver(report).observe(document.body);
  parent.postMessage({ bertologyReady: true }, "*");
  report();
}
