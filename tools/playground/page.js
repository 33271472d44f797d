// The playground: what the reader types, what the model answers, and how it is shown. The model
// runs in worker.js; pieces are cut here, so that they show while the reader types.
"use strict";
(() => {
  const space = (self.bertologyPlayground ??= {});
  const root = document.getElementById("pg-root");
  if (!root) return;
  const home = new URL(".", document.currentScript.src);
  const $ = (name) => root.querySelector(`[data-pg="${name}"]`);
  const example = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const { model, most, shown: k } = example;
  const wordpiece = new space.WordPiece(space.vocabulary);
  const { pieces, special } = wordpiece;
  const MASK = special["[MASK]"];
  // What the page says, from the table of texts: language -> name -> text with {values}.
  const texts = space.texts[root.lang] ?? space.texts.en;
  const say = (name, values = {}) => texts[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
  // A text around an element that stands for one of its values.
  const around = (name, key, element) => {
    const [before, after] = texts[name].split(`{${key}}`);
    return [before, element, after];
  };
  const worded = (failure) => (failure.name ? say(failure.name, failure.values) : failure.text);

  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const percent = (p) => (p >= 0.0995 ? `${(100 * p).toFixed(0)} %` : `${(100 * p).toFixed(1)} %`);
  const megabytes = (bytes) => (bytes / 1e6).toFixed(0);

  // --- state --------------------------------------------------------------------------------
  const state = {
    text: example.text, tokens: [], chosen: example.chosen, layer: example.layer,
    head: example.head, depth: model.layers, result: null, problem: "", ready: false,
  };

  // A matrix [T, T] of one head, from the flat list of all heads.
  const weightsOf = ({ attentions, length, unit }, layer, head) => {
    const from = (layer * model.heads + head) * length * length;
    return Array.from({ length }, (_, i) =>
      Array.from({ length }, (_, j) => attentions[from + i * length + j] / unit));
  };

  // --- the model ----------------------------------------------------------------------------
  let worker = null, reason = "", asked = 0, wanted = null, busy = false;
  const open = new Map();  // number of a question -> what to do with its answer
  const status = (text) => { $("status").textContent = text; };

  function reasonNotToLoad() {
    const { build } = space;
    if (typeof WebAssembly !== "object" || typeof WebAssembly.instantiate !== "function") {
      return say("no-webassembly");
    }
    if (location.protocol === "file:") {
      return say("as-file");
    }
    if (typeof Worker !== "function" || typeof BigInt64Array !== "function") {
      return say("too-old");
    }
    if (!build?.runtime || !build.model) {
      return say("no-runtime");
    }
    return "";
  }

  function load() {
    const { runtime } = space.build;
    const total = runtime.bytes + model.bytes;
    const bar = $("progress");
    $("load").disabled = true;
    bar.hidden = false;
    bar.max = total;
    bar.value = 0;
    status(say("loading"));
    worker = new Worker(new URL("worker.js", home), { type: "module" });
    let said = 0;
    worker.onmessage = ({ data }) => {
      if (data.progress !== undefined) {
        bar.value = data.progress;
        // Said in quarters, so that a screen reader is not flooded.
        const quarter = Math.floor((4 * data.progress) / total);
        if (quarter > said && quarter < 4) {
          said = quarter;
          status(say("loaded-part", { percent: 25 * quarter }));
        } else if (data.progress >= total) status(say("preparing"));
      } else if (data.ready) {
        state.ready = true;
        bar.hidden = true;
        $("load").hidden = true;
        status(say("ready"));
        $("text").focus({ preventScroll: true });
        refresh();
      } else if (data.number === undefined) {
        failed(worded(data.failure));
      } else {
        const { resolve, reject } = open.get(data.number);
        open.delete(data.number);
        if (data.answer) resolve(data.answer);
        else reject(new Error(worded(data.failure)));
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      failed(event.message || say("not-started"));
    };
    worker.postMessage({
      load: {
        program: new URL(`runtime/${runtime.program}`, home).href,
        model: new URL(`model.onnx?v=${model.digest.slice(0, 12)}`, home).href,
        digest: model.digest,
      },
    });
  }

  function failed(why) {
    worker?.terminate();
    worker = null;
    busy = false;
    $("progress").hidden = true;
    $("load").disabled = false;
    $("load").textContent = say("again");
    status(say("not-loaded", { why }));
  }

  // What the model answers to a question, as a promise; see worker.js.
  function question(content) {
    const number = (asked += 1);
    return new Promise((resolve, reject) => {
      open.set(number, { resolve, reject });
      worker.postMessage({ number, question: content });
    });
  }

  // Ask for the current text; while an answer is under way only the newest wish waits.
  function ask() {
    wanted = { text: state.text, tokens: state.tokens, chosen: state.chosen };
    root.setAttribute("aria-busy", "true");
    if (!busy) next();
  }

  async function next() {
    const now = wanted;
    const { tokens, chosen } = now;
    const masks = tokens.flatMap(({ id }, place) => (id === MASK ? [place] : []));
    const depths = Array.from({ length: model.layers + 1 }, (_, layer) => [layer, chosen]);
    busy = true;
    let answer = null, failure = "";
    try {
      answer = await question({
        ids: tokens.map(({ id }) => id),
        places: [...masks.map((place) => [model.layers, place]), ...depths],
        alike: [tokens[chosen].id],
        k,
      });
    } catch (error) {
      failure = say("not-computed", { why: error.message });
    }
    busy = false;
    if (wanted === null) return;  // there is nothing to compute any more
    if (wanted !== now) return next();
    root.setAttribute("aria-busy", "false");
    if (answer) arrived(now, answer, masks);
    else problem(failure);
  }

  function arrived({ text, tokens, chosen }, answer, masks) {
    state.result = {
      text, tokens, length: tokens.length, attentions: answer.attentions, unit: 1,
      fills: masks.map((place, i) => ({ place, best: answer.read[i] })),
      near: { [chosen]: { alike: answer.alike[0], read: answer.read.slice(masks.length) } },
    };
    show();
  }

  function useExample() {
    state.text = $("text").value = example.text;
    state.chosen = example.chosen;
    refresh();
  }

  // --- from text to pieces ------------------------------------------------------------------
  function refresh() {
    clearTimeout(timer);
    state.text = $("text").value;
    state.tokens = wordpiece.encode(state.text);
    const n = state.tokens.length;
    state.problem = "";
    if (n === 2) state.problem = say("empty");
    else if (n > most) state.problem = say("too-long", { n, most });
    if (state.chosen >= n || state.chosen < 0) state.chosen = Math.max(0, n - 2);
    showTokens();
    problem(state.problem);
    if (state.problem) {
      state.result = wanted = null;
      root.setAttribute("aria-busy", "false");
    } else if (state.ready) {
      ask();
      return;  // what is shown stays until the answer comes
    } else {
      state.result = state.text === example.text ? exampleResult() : null;
    }
    show();
  }

  const exampleResult = () => ({
    text: example.text, tokens: state.tokens, length: state.tokens.length,
    attentions: example.attentions, unit: 1000, fills: example.fills, near: example.near,
  });

  const problem = (text) => {
    $("problem").textContent = text;
    $("problem").hidden = text === "";
    $("text").setAttribute("aria-invalid", String(text !== ""));
  };

  // --- what is shown ------------------------------------------------------------------------
  function showTokens() {
    const place = $("tokens");
    const held = place.contains(document.activeElement);
    const few = state.tokens.slice(0, most);
    place.replaceChildren(...few.map(({ piece, id }, i) => {
      const chosen = i === state.chosen;
      const button = make("button", {
        type: "button", role: "radio", class: "pg-token", "aria-checked": String(chosen),
        tabindex: chosen ? "0" : "-1", title: say("number", { id }), lang: "en",
      }, piece);
      button.addEventListener("click", () => choose(i));
      return button;
    }));
    if (held) place.children[state.chosen]?.focus();
    const typed = state.tokens.length - 2;
    const unknown = state.tokens.filter(({ id }) => id === special["[UNK]"]).length;
    $("counted").textContent = say(
      `counted${unknown ? "-unknown" : ""}${typed === 1 ? "-one" : ""}`, { n: typed, unknown });
  }

  function choose(i) {
    state.chosen = Math.min(Math.max(i, 0), Math.min(state.tokens.length, most) - 1);
    showTokens();
    if (state.ready && !state.problem) ask();
    else show();
  }

  // A piece as a head of a row or column: in whatever language the page is, it is English.
  const english = (piece, scope) => make("th", { scope, lang: "en" }, piece);
  const answers = (caption, head, rows) => {
    const table = make("table", { class: "pg-answers" }, make("caption", {}, caption));
    const names = head.map((name) => make("th", { scope: "col" }, name));
    const longest = Math.max(...rows.map(([, value]) => value), 1e-9);
    table.append(make("thead", {}, make("tr", {}, ...names)), make("tbody", {}, ...rows.map(
      ([piece, value, text]) => {
        const bar = make("span", { class: "pg-bar", "aria-hidden": "true" });
        bar.style.width = `${Math.max(0, (100 * value) / longest).toFixed(1)}%`;
        return make("tr", {}, english(piece, "row"), make("td", {}, text),
          make("td", { class: "pg-bars", "aria-hidden": "true" }, bar));
      })));
    return table;
  };

  const note = (...content) => make("p", { class: "pg-note" }, ...content);
  const action = (text, then) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", then);
    return button;
  };

  // In place of results that do not belong to the text.
  const waiting = () => {
    if (state.problem) return [note(state.problem)];
    return [note(...around(reason ? "cannot-here" : "not-yet", "button",
      action(say("back"), useExample)))];
  };

  function show() {
    const { result } = state;
    showFills(result);
    showAttention(result);
    showNear(result);
  }

  function showFills(result) {
    const place = $("fills");
    if (!result) return place.replaceChildren(...waiting());
    if (!result.fills.length) {
      const inLowerCase = /\[mask\]/i.test(result.text);
      return place.replaceChildren(note(say(inLowerCase ? "no-mask-capitals" : "no-mask")));
    }
    const several = result.fills.length > 1;
    place.replaceChildren(...result.fills.map(({ best }, i) => answers(
      several ? say("for-mask-number", { n: i + 1 }) : say("for-mask"),
      [say("piece"), say("probability")],
      best.map(([id, p]) => [pieces[id], p, percent(p)]))));
  }

  function showAttention(result) {
    const place = $("attention");
    const numbers = $("numbers");
    if (!result) {
      numbers.hidden = true;
      return place.replaceChildren(...waiting());
    }
    const tokens = result.tokens.map(({ piece }) => piece);
    const weights = weightsOf(result, state.layer, state.head);
    const chosen = Math.min(state.chosen, tokens.length - 1);
    const best = weights[chosen].map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const attended = best.map(([w, j]) => say("attended", { token: tokens[j], share: percent(w) }));
    const said = say("most-attended", {
      layer: state.layer + 1, head: state.head + 1, token: tokens[chosen],
      best: attended.join(say("list-comma")),
    });
    $("said").textContent = said;
    space.drawAttention(place, {
      tokens, weights, chosen, width: Math.min(place.clientWidth || 600, 640), onChoose: choose,
      label: say("lines", { said }),
    });
    numbers.hidden = false;
    if (numbers.open) showNumbers(tokens, weights);
  }

  function showNumbers(tokens, weights) {
    const head = make("tr", {}, make("th", { scope: "col" }, say("from-to")),
      ...tokens.map((token) => english(token, "col")));
    const table = make("table", { class: "pg-matrix" },
      make("caption", {}, say("percent-of-row")),
      make("thead", {}, head),
      make("tbody", {}, ...weights.map((row, i) => make("tr", {},
        english(tokens[i], "row"),
        ...row.map((w) => make("td", {}, (100 * w).toFixed(0)))))));
    $("matrix").replaceChildren(table);
  }

  function showNear(result) {
    const place = $("near");
    if (!result) return place.replaceChildren(...waiting());
    const { piece, id } = result.tokens[Math.min(state.chosen, result.length - 1)];
    const near = result.near[state.chosen];
    if (!near) return;  // on its way
    const others = near.alike.filter(([other]) => other !== id).slice(0, k - 1);
    const depth = state.depth;
    place.replaceChildren(
      answers(say("nearest-to", { token: piece }),
        [say("piece"), say("cosine")], others.map(([other, c]) => [pieces[other], c, c.toFixed(2)])),
      answers(say(depth === 0 ? "read-before" : "read-from", { token: piece, layer: depth }),
        [say("piece"), say("probability")],
        near.read[depth].map(([other, p]) => [pieces[other], p, percent(p)])));
  }

  // --- controls -----------------------------------------------------------------------------
  let timer = 0;
  const replace = (start, end, text) => {
    const box = $("text");
    box.setRangeText(text, start, end, "end");
    refresh();
  };
  $("text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, state.ready ? 250 : 60);
  });
  $("mask").addEventListener("click", () => {
    const { selectionStart: start, selectionEnd: end, value } = $("text");
    const before = start > 0 && !/\s$/.test(value.slice(0, start)) ? " " : "";
    replace(start, end, `${before}[MASK]`);
    const at = start + before.length;
    state.chosen = Math.max(0, state.tokens.findIndex((token) => token.id === MASK
      && token.start === at));
    refresh();
    $("text").focus();
  });
  $("hide").addEventListener("click", () => {
    const { start, end, id } = state.tokens[state.chosen] ?? {};
    if (start === undefined || start === end) {
      return problem(say("not-hidden"));
    }
    if (id !== MASK) replace(start, end, "[MASK]");
  });
  $("examples").addEventListener("change", ({ target }) => {
    if (target.value === "") return;
    $("text").value = target.value;
    target.value = "";
    const tokens = wordpiece.encode($("text").value);
    const mask = tokens.findIndex(({ id }) => id === MASK);
    state.chosen = $("text").value === example.text ? example.chosen : Math.max(mask, 1);
    refresh();
  });
  $("tokens").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const last = Math.min(state.tokens.length, most) - 1;
    const to = step ? (state.chosen + step + last + 1) % (last + 1)
      : { Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  for (const name of ["layer", "head"]) {
    $(name).value = String(state[name]);
    $(name).addEventListener("change", ({ target }) => {
      state[name] = Number(target.value);
      showAttention(state.result);
    });
  }
  $("depth").addEventListener("input", ({ target }) => {
    state.depth = Number(target.value);
    $("depth-shown").textContent = target.value;
    if (state.result) showNear(state.result);
  });
  $("depth").value = String(state.depth);
  $("depth-shown").textContent = String(state.depth);
  $("numbers").addEventListener("toggle", () => { if (state.result) showAttention(state.result); });
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) < 1) return;
    width = entry.contentRect.width;
    showAttention(state.result);
  }).observe($("attention"));

  reason = reasonNotToLoad();
  if (reason) {
    $("load").disabled = true;
    status(reason);
  } else {
    const { runtime } = space.build;
    $("load").textContent = say("offer", {
      model: megabytes(model.bytes), program: megabytes(runtime.bytes),
    });
    $("load").addEventListener("click", load);
    status(say("until-then"));
  }
  for (const part of root.querySelectorAll(".pg-scripted")) part.hidden = false;
  // The example's tables, for readers without scripts, were in English; what replaces them is not.
  for (const name of ["fills", "attention", "near"]) $(name).lang = root.lang;
  // A browser may bring back what was typed before the page was left.
  refresh();
  space.page = { state, weightsOf, question };
})();
