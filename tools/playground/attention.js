// Draws one head's attention between the tokens of a text: lines from the token that attends, on
// the left, to those attended to, on the right.
"use strict";
(() => {
  const space = (self.bertologyPlayground ??= {});
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 22, TOP = 14, FAINTEST = 0.02;

  const element = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const shortened = (token, most) =>
    [...token].length > most ? [...token].slice(0, most - 1).join("") + "…" : token;

  // place: the element to fill; tokens: T strings; weights: row i attends to column j;
  // chosen: the token whose lines stand out, or null; width in CSS pixels.
  function drawAttention(place, { tokens, weights, chosen, width, label, onChoose }) {
    const n = tokens.length, height = TOP * 2 + (n - 1) * ROW;
    const side = Math.max(90, Math.min(150, width * 0.32));
    const left = side, right = width - side;
    const most = Math.floor((side - 10) / 8);
    const y = (i) => TOP + i * ROW;
    const drawing = element("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
    });
    const lines = element("g", { class: "pg-lines" });
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const weight = weights[i][j];
        if (weight < FAINTEST) continue;
        const lit = chosen === null || chosen === i;
        lines.append(element("line", {
          x1: left + 2, y1: y(i), x2: right - 2, y2: y(j),
          "stroke-width": (0.5 + 4 * weight).toFixed(2),
          "stroke-opacity": (lit ? 0.15 + 0.85 * weight : 0.06).toFixed(3),
        }));
      }
    }
    drawing.append(lines);
    tokens.forEach((token, i) => {
      const from = element("text", {
        lang: "en",
        x: left - 6, y: y(i), "text-anchor": "end", class: chosen === i ? "pg-chosen" : "",
      }, shortened(token, most));
      from.addEventListener("click", () => onChoose(i));
      const weight = chosen === null ? null : weights[chosen][i];
      const to = element("text", {
        lang: "en",
        x: right + 6, y: y(i), class: weight !== null && weight >= 0.1 ? "pg-met" : "",
      }, shortened(token, most));
      drawing.append(from, to);
    });
    place.replaceChildren(drawing);
  }

  space.drawAttention = drawAttention;
})();
