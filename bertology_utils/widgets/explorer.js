(function ({ id, sizes, grid }) {
  const root = document.getElementById(id);
  if (!root || root.dataset.ready) return;
  root.dataset.ready = "true";
  const controls = [...root.querySelectorAll(".bx-controls select, .bx-controls input")];
  const templates = root.querySelectorAll(":scope > template");
  const shown = root.querySelector(":scope > .bx-shown");
  const said = root.querySelector(":scope > [aria-live]");
  let current = null;
  // A browser may restore controls after a reload; the state has to follow them.
  const textOf = (control) => control.tagName === "SELECT"
    ? control.selectedOptions[0].textContent
    : JSON.parse(control.dataset.labels)[+control.value];
  const show = (speak) => {
    let place = 0;
    controls.forEach((control, i) => { place = place * sizes[i] + +control.value; });
    controls.forEach((control) => {
      if (control.type !== "range") return;
      control.setAttribute("aria-valuetext", textOf(control));
      control.nextElementSibling.textContent = textOf(control);
    });
    if (grid[place] === current) return;
    current = grid[place];
    shown.replaceChildren(document.importNode(templates[current].content, true));
    if (!speak) return;
    const settings = controls.map((control) =>
      root.querySelector(`label[for="${control.id}"]`).textContent + " " + textOf(control));
    said.textContent = "Showing " + settings.join(", ");
  };
  controls.forEach((control) => {
    control.addEventListener(control.type === "range" ? "input" : "change", () => show(true));
  });
  show(false);
})
