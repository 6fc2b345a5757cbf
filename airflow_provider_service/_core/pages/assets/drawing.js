"use strict";
// The drawing of the workflow: how large it is shown, where, and what belongs together. Without scripts it scrolls.
(() => {
  // Below the readable scale, the texts of 13 px would be smaller than 11: less is shown then, but never smaller.
  const READABLE = 0.85, WITH_NAMES = 0.4, WITH_SIGNS = 0.25, LEAST = 0.04, MOST = 2, STEP = 1.25, LEAST_DRAG = 4;
  const OVERVIEW = { width: 320, height: 52 };
  let scale = null, drag = null, hasDragged = false;

  const place = () => document.getElementById("drawing");
  const image = () => place() && place().querySelector("svg");
  const overview = () => document.getElementById("overview");
  const area = (box) => { const { x, y, width, height } = box.querySelector(".shape").getBBox(); return [x, y, width, height]; };
  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
  const behavior = () => matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";

  function fitting() {
    const { width, height } = image().viewBox.baseVal, room = place();
    const style = getComputedStyle(room), most = parseFloat(style.maxHeight) - 2 || Infinity; // without its borders
    return Math.min(room.clientWidth / width, most / height);
  }

  function show() {
    const { width, height } = image().viewBox.baseVal;
    image().style.width = `${width * scale}px`;
    image().style.height = `${height * scale}px`;
    image().style.setProperty("--scale", scale);
    image().dataset.far = scale >= READABLE - 0.001 ? "no" : scale >= WITH_NAMES ? "names" : scale >= WITH_SIGNS ? "signs" : "colours";
    showOverview();
  }

  // Keeps what is at this point of the place, by default its middle.
  function zoom(wanted, x = place().clientWidth / 2, y = place().clientHeight / 2) {
    const room = place(), before = scale;
    scale = clamp(wanted, Math.min(LEAST, fitting()), MOST);
    const [left, top] = [(room.scrollLeft + x) * scale / before - x, (room.scrollTop + y) * scale / before - y];
    show();
    room.scrollTo(left, top);
    showFrame();
  }

  function centre(box, how = "auto") {
    const room = place(), [x, y, width, height] = area(box).map((value) => value * scale);
    const isSeen = x >= room.scrollLeft && x + width <= room.scrollLeft + room.clientWidth
      && y >= room.scrollTop && y + height <= room.scrollTop + room.clientHeight;
    if (!isSeen) room.scrollTo({ left: x + width / 2 - room.clientWidth / 2, top: y + height / 2 - room.clientHeight / 2, behavior: how });
  }

  function showOverview() {
    const small = overview(), room = place(), { width, height } = image().viewBox.baseVal;
    const isWhole = width * scale <= room.clientWidth + 1 && height * scale <= parseFloat(getComputedStyle(room).maxHeight) + 1;
    small.classList.toggle("unneeded", isWhole);
    const part = Math.min(OVERVIEW.width / width, OVERVIEW.height / height);
    small.setAttribute("viewBox", `0 0 ${width} ${height}`);
    small.setAttribute("width", width * part);
    small.setAttribute("height", height * part);
    small.replaceChildren(...[...image().querySelectorAll(".node")].map((node) => {
      const box = node.querySelector(".shape").cloneNode();
      box.setAttribute("class", node.getAttribute("class").replace("node ", ""));
      return box;
    }), Object.assign(document.createElementNS(image().namespaceURI, "rect"), { id: "frame" }));
    showFrame();
  }

  function showFrame() {
    const frame = document.getElementById("frame"), room = place(), { width, height } = image().viewBox.baseVal;
    if (!frame) return;
    const seen = { x: room.scrollLeft, y: room.scrollTop, width: room.clientWidth, height: room.clientHeight };
    for (const [name, value] of Object.entries(seen)) frame.setAttribute(name, value / scale);
    frame.setAttribute("width", Math.min(width, room.clientWidth / scale));
    frame.setAttribute("height", Math.min(height, room.clientHeight / scale));
  }

  function setUp() {
    if (!image()) { scale = null; return; }
    document.querySelector(".tools").hidden = false;
    const isFirst = scale === null;
    if (isFirst) scale = fitting() >= WITH_NAMES ? Math.min(1, fitting()) : READABLE;
    show();
    const box = isFirst && document.querySelector("#drawing .node[tabindex='0']");
    if (box) centre(box);
    showFrame();
  }

  // Node, row and message of the same name lead to each other.
  function reveal(target) {
    for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
    const name = target.id.replace(/^(box|row)-/, "");
    for (const one of ["box", "row"]) document.getElementById(`${one}-${name}`)?.classList.add("chosen");
    if (target.matches(".node")) {
      if (scale < WITH_NAMES) zoom(READABLE);
      place().scrollIntoView({ block: "nearest", behavior: behavior() });
      centre(target, behavior());
      stop(target, boxes());
    } else {
      target.scrollIntoView({ block: "center", behavior: behavior() });
      const link = target.querySelector(".to-box");
      if (link) stop(link, links());
    }
  }

  const boxes = () => [...document.querySelectorAll("#drawing .node[id]")];
  const links = () => [...document.querySelectorAll("#nodes .to-box")];

  // Of the nodes, and of their rows, one can be reached by Tab; the others by arrow keys.
  function stop(one, group) {
    for (const other of group) other.setAttribute("tabindex", other === one ? "0" : "-1");
    one.focus({ preventScroll: true, focusVisible: true });
  }

  function nextBox(from, key) {
    const middle = (one) => { const [left, top, width, height] = area(one); return [left + width / 2, top + height / 2]; };
    const [x, y] = middle(from), [along, side] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
    const far = boxes().filter((one) => one !== from).map((one) => {
      const [dx, dy] = middle(one).map((value, axis) => value - (axis ? y : x));
      const ahead = dx * along + dy * side, aside = Math.abs(dx * side) + Math.abs(dy * along);
      return { one, ahead, distance: ahead + 3 * aside };
    });
    return far.filter((other) => other.ahead > 1).sort((one, other) => one.distance - other.distance)[0]?.one;
  }

  function nextOf(group, from, key) {
    const at = group.indexOf(from);
    return { Home: group[0], End: group.at(-1), ArrowDown: group[at + 1], ArrowUp: group[at - 1] }[key];
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !image()) return;
    const box = event.target.closest(".node[id]"), link = event.target.closest("#nodes .to-box");
    const change = place().contains(event.target) ? { "+": STEP, "=": STEP, "-": 1 / STEP }[event.key] : null;
    if (change) zoom(scale * change);
    else if (event.key === "0" && place().contains(event.target)) zoom(Math.min(1, fitting()));
    else {
      const isArrow = event.key.startsWith("Arrow");
      const next = box ? (isArrow ? nextBox(box, event.key) : nextOf(boxes(), box, event.key)) : link && nextOf(links(), link, event.key);
      if (!next) { if (!box || !isArrow) return; } else {
        stop(next, box ? boxes() : links());
        if (box) centre(next, behavior()); else next.scrollIntoView({ block: "nearest" });
      }
    }
    event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    if (hasDragged) { hasDragged = false; event.preventDefault(); event.stopPropagation(); return; }
    const button = event.target.closest("[data-do]"), link = event.target.closest("a[href^='#box-'], a[href^='#row-']");
    if (button) {
      ({ in: () => zoom(scale * STEP), out: () => zoom(scale / STEP), fit: () => zoom(Math.min(1, fitting())), full: () => zoom(1),
        find: () => reveal(document.getElementById(button.dataset.node)) })[button.dataset.do]();
    } else if (link && image()) {
      const target = document.getElementById(link.getAttribute("href").slice(1));
      if (target) { event.preventDefault(); reveal(target); }
    }
  }, true);

  // The wheel scrolls; with Ctrl, as on every map, it zooms. Fingers scroll by themselves.
  document.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey) || !event.target.closest("#drawing")) return;
    event.preventDefault();
    const at = place().getBoundingClientRect();
    zoom(scale * (event.deltaY < 0 ? STEP : 1 / STEP), event.clientX - at.left, event.clientY - at.top);
  }, { passive: false });

  function moveTo(event) {
    const room = place(), at = overview().getBoundingClientRect(), { width, height } = image().viewBox.baseVal;
    room.scrollTo((event.clientX - at.left) / at.width * width * scale - room.clientWidth / 2, (event.clientY - at.top) / at.height * height * scale - room.clientHeight / 2);
  }

  document.addEventListener("pointerdown", (event) => {
    hasDragged = false;
    if (event.button !== 0 || !image()) return;
    if (event.target.closest("#overview")) { drag = { isOverview: true }; moveTo(event); }
    else if (event.pointerType === "mouse" && image().contains(event.target)) drag = { x: event.clientX, y: event.clientY, left: place().scrollLeft, top: place().scrollTop };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (drag.isOverview) { moveTo(event); return; }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    hasDragged = hasDragged || Math.hypot(dx, dy) >= LEAST_DRAG;
    if (hasDragged) { place().classList.add("dragged"); place().scrollTo(drag.left - dx, drag.top - dy); }
  });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { drag = null; place()?.classList.remove("dragged"); });
  document.addEventListener("dragstart", (event) => { if (event.target.closest?.("#drawing")) event.preventDefault(); });
  document.addEventListener("scroll", (event) => { if (event.target.id === "drawing") showFrame(); }, true);
  addEventListener("resize", () => { if (image()) showOverview(); });
  document.addEventListener("followed", setUp);
  setUp();
})();
