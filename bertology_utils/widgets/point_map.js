(function ({ id, maps, sizes }) {
  const root = document.getElementById(id);
  if (!root || root.dataset.ready) return;
  root.dataset.ready = "true";
  const controls = [...root.querySelectorAll(".bx-controls select, .bx-controls input")];
  const svg = root.querySelector("svg.bx-map");
  const legend = root.querySelector(".bx-map-legend");
  const line = root.querySelector(".bx-map-line");
  const pointed = root.querySelector(".bx-map-pointed");
  const said = root.querySelector(":scope > [aria-live]");
  let marks = [], map = null, drawn = -1, at = -1;
  const textOf = (control) => control.tagName === "SELECT"
    ? control.selectedOptions[0].textContent : String(+control.value);
  const move = (mark, [x, y]) => { mark.style.transform = `translate(${x}px,${y}px)`; };
  const point = (i) => {
    if (i >= 0 && i === at) return;
    if (marks[at]) marks[at].classList.remove("bx-at");
    at = i;
    pointed.textContent = marks[i] ? `${map.groups[map.group[i]]}: ${map.notes[i]}` : "";
    if (!marks[i]) return;
    marks[i].classList.add("bx-at");
    svg.append(marks[i]);
  };
  const draw = (layer) => {
    svg.replaceChildren();
    point(-1);
    marks = map.group.map((group, i) => {
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
      mark.setAttribute("d", map.shapes[group]);
      mark.setAttribute("class", `bx-mark bx-mark-${group}`);
      move(mark, map.places[layer][i]);
      mark.addEventListener("pointerenter", () => point(i));
      svg.append(mark);
      return mark;
    });
    legend.replaceChildren(...map.groups.map((name, group) => {
      const item = document.createElement("span");
      item.innerHTML = `<svg viewBox="-9 -9 18 18" aria-hidden="true"><path class="bx-mark ` +
        `bx-mark-${group}" d="${map.shapes[group]}"/></svg>`;
      item.append(name);
      return item;
    }));
  };
  const show = (speak) => {
    let place = 0;
    controls.slice(0, -1).forEach((control, i) => { place = place * sizes[i] + +control.value; });
    const range = controls[controls.length - 1];
    const layer = +range.value;
    range.nextElementSibling.textContent = layer;
    range.setAttribute("aria-valuetext", `layer ${layer}`);
    if (place !== drawn) {
      map = maps[place];
      drawn = place;
      draw(layer);
    } else {
      marks.forEach((mark, i) => move(mark, map.places[layer][i]));
    }
    line.textContent = map.lines[layer];
    svg.setAttribute("aria-label", map.lines[layer]);
    if (!speak) return;
    const settings = controls.map((control) =>
      root.querySelector(`label[for="${control.id}"]`).textContent + " " + textOf(control));
    said.textContent = "Showing " + settings.join(", ") + ". " + map.lines[layer];
  };
  controls.forEach((control) => {
    control.addEventListener(control.type === "range" ? "input" : "change", () => show(true));
  });
  // With the keyboard, arrows walk through the points, group by group.
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !marks.length) return;
    event.preventDefault();
    point(at < 0 && step < 0 ? marks.length - 1 : (at + step + marks.length) % marks.length);
    said.textContent = pointed.textContent;
  });
  svg.addEventListener("pointerleave", () => point(-1));
  svg.addEventListener("blur", () => point(-1));
  show(false);
})
