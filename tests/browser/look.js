// Put into every frame before its own scripts: measures what a test cannot see from outside.
window.bertologyLook = (() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  // Any CSS colour as [r, g, b, a], by painting it.
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = "#000";
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) => {
    const a = top[3];
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const parentOf = (node) => node.parentElement || (node.getRootNode().host ?? null);
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = parentOf(at)) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;  // a gradient or picture: not judged
      const colour = rgba(style.backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const shown = (node) => {
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    const box = node.getBoundingClientRect();
    return box.width > 1 && box.height > 1;
  };
  const name = (node) => {
    const id = node.id ? "#" + node.id : "";
    const classes = [...node.classList].slice(0, 3).map((c) => "." + c).join("");
    return node.tagName.toLowerCase() + id + classes;
  };
  const content = () => document.querySelector("article.bd-article, main") || document.body;

  function faint() {
    const found = [];
    for (const node of content().querySelectorAll("*")) {
      const text = [...node.childNodes].filter((n) => n.nodeType === 3)
        .map((n) => n.textContent.trim()).join(" ").trim();
      if (!text || ["SCRIPT", "STYLE", "OPTION", "NOSCRIPT"].includes(node.tagName)) continue;
      if (node.closest("[aria-hidden='true'], mjx-assistive-mml") || !shown(node)) continue;
      if (node.closest(".search-button__kbd-shortcut")) continue;  // the theme's hint of a key
      const style = getComputedStyle(node);
      const svg = node instanceof SVGElement;
      const below = ground(node);
      if (!below) continue;
      let ink = rgba(svg ? style.fill : style.color).slice();
      for (let at = node; at; at = parentOf(at)) ink[3] *= +getComputedStyle(at).opacity;
      ink = over(ink, below);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
      const value = ratio(ink, below);
      if (value < (large ? 3 : 4.5)) {
        found.push(`${value.toFixed(2)}:1 ${name(node)} in ${name(node.parentElement)}: ` +
          text.slice(0, 60));
      }
    }
    return [...new Set(found)];
  }

  function unnamed() {
    const found = [];
    const filled = (node, attribute) => (node.getAttribute(attribute) || "").trim() !== "";
    for (const image of document.querySelectorAll("img")) {
      if (!filled(image, "alt")) found.push("img without alt: " + image.outerHTML.slice(0, 120));
    }
    for (const drawing of document.querySelectorAll("svg[role='img']:not([aria-hidden='true'])")) {
      if (!filled(drawing, "aria-label") && !drawing.querySelector("title")) {
        found.push("svg without a name: " + drawing.outerHTML.slice(0, 120));
      }
    }
    // A drawing of a chapter that nobody declared an image has no alt text at all; one that is
    // hidden from readers who listen, such as a mark beside its name, needs none.
    const undeclared = ".cell_output svg:not([role='img'], button *, [aria-hidden='true'])";
    for (const drawing of document.querySelectorAll(undeclared)) {
      found.push("svg that is no image: " + drawing.outerHTML.slice(0, 120));
    }
    for (const frame of document.querySelectorAll("iframe")) {
      if (!filled(frame, "title")) found.push("frame without title: " + frame.id);
    }
    return found;
  }

  function overflow() {
    const width = document.documentElement.clientWidth;
    if (document.scrollingElement.scrollWidth <= width) return [];
    const found = [`the page is ${document.scrollingElement.scrollWidth} px wide at ${width} px`];
    const scrolls = (node) => {
      for (let at = node.parentElement; at; at = at.parentElement) {
        if (getComputedStyle(at).overflowX !== "visible") return true;
      }
      return false;
    };
    for (const node of document.body.querySelectorAll("*")) {
      if (node.getBoundingClientRect().right > width + 1 && !scrolls(node)) found.push(name(node));
    }
    return found.slice(0, 12);
  }

  // One element with text for every look that the page has: its colour and its kind, and those of
  // what it lies in. Thousands of words of code and cells of tables look like a few hundred.
  function looks() {
    const found = new Map();
    for (const node of document.body.querySelectorAll("*")) {
      const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
      if (!own || node.matches("script, style, noscript") || !shown(node)) continue;
      const kinds = [node, node.parentElement, node.parentElement?.parentElement]
        .map((at) => at && `${at.tagName}.${at.getAttribute("class") ?? ""}`);
      const look = [...kinds, getComputedStyle(node).color].join(" ");
      if (!found.has(look)) found.set(look, node);
    }
    return [...found.values()];
  }

  // Resolves once formulas are set, letters are there, and nothing fades or slides any more.
  async function settled() {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    // Two frames: what follows a size or an attribute does so before the second.
    for (let i = 0; i < 2; i++) await frame();
    await window.MathJax?.startup?.promise;
    await document.fonts.ready;
    const moving = () => document.getAnimations().filter((animation) =>
      animation.playState === "running" && animation.effect?.getComputedTiming().endTime < Infinity);
    while (moving().length) await frame();
  }

  return { faint, looks, unnamed, overflow, settled };
})();
