/* Filters and sorting for the table of all claims. Without this script the table is whole. */
(function () {
  "use strict";
  const board = document.currentScript.closest(".scoreboard");
  const rows = Array.from(board.querySelectorAll("tbody tr"));
  const shown = board.querySelector(".scoreboard-count");
  const controls = board.querySelector(".scoreboard-controls");
  const wanted = {};

  function apply() {
    let n = 0;
    for (const row of rows) {
      const text = wanted.text || "";
      const fits = ["section", "mode", "verdict"].every(
        (key) => !wanted[key] || row.dataset[key] === wanted[key]
      ) && row.textContent.toLowerCase().includes(text);
      row.hidden = !fits;
      n += fits;
    }
    shown.textContent = n + " of " + rows.length + " claims shown";
  }

  function add(name, control, event, read) {
    const label = document.createElement("label");
    label.textContent = name + " ";
    label.appendChild(control);
    controls.appendChild(label);
    control.addEventListener(event, function () { read(); apply(); });
  }

  for (const key of ["section", "verdict", "mode"]) {
    const select = document.createElement("select");
    select.appendChild(new Option("all", ""));
    for (const value of new Set(rows.map((row) => row.dataset[key]))) {
      select.appendChild(new Option(value, value));
    }
    add(key, select, "change", function () { wanted[key] = select.value; });
  }
  const search = document.createElement("input");
  search.type = "search";
  add("search", search, "input", function () { wanted.text = search.value.trim().toLowerCase(); });

  board.querySelectorAll("thead th").forEach(function (head, column) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", function () {
      const down = head.getAttribute("aria-sort") === "ascending";
      board.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = (row) => row.children[column].textContent.trim();
      rows.sort((a, b) => text(a).localeCompare(text(b), "en", { numeric: true }));
      if (down) rows.reverse();
      rows[0].parentNode.append(...rows);
    });
  });
  apply();
})();
