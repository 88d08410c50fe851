// The classes: a tree whose nodes are opened, or one list. Rows are made when they are shown for the first time.
const parents = data.nodes.parents;
const children = names.map(() => []);
parents.forEach((parent, node) => { if (parent >= 0) children[parent].push(node); });
const pathOf = (node) => {
  const path = [];
  for (let at = node; at > 0; at = parents[at]) path.unshift(at);
  return path;
};
for (const list of children) list.sort((a, b) => data.nodes.support[b] - data.nodes.support[a] || (names[a] < names[b] ? -1 : 1));
const leaves = names.map((_, node) => node).filter((node) => node > 0 && children[node].length === 0);
const isFlat = leaves.length === children[0].length;
const opened = new Set();
const made = new Map();

const measure = (value) => {
  const bar = element("span", { class: "bar" });
  if (value !== null) {
    const fill = element("i");
    fill.style.width = 100 * value + "%";
    bar.append(fill);
  }
  return element("td", { class: "number" }, element("div", { class: "measure" }, bar, element("span", {}, percent(value, 0))));
};
const measures = [...byId("class-table").tHead.querySelectorAll("th")].map((head) => head.dataset.key).slice(2);
const rowOf = (node) => {
  if (made.has(node)) return made.get(node);
  const label = element("div", { class: "label" }, element("span", { class: "mark", "aria-hidden": "true" }), element("span", {}, ...breakable(names[node])));
  label.style.setProperty("--level", pathOf(node).length - 1);
  const row = element("tr", { tabindex: -1, "data-node": node }, element("td", {}, label),
    element("td", { class: "number" }, data.nodes.support[node].toLocaleString("en")), ...measures.map((key) => measure(data.nodes[key][node])));
  made.set(node, row);
  return row;
};

// One row is reached by the tab key; arrow keys move from there.
const reachable = (row) => {
  for (const old of made.values()) old.tabIndex = -1;
  row.tabIndex = 0;
};
const body = byId("nodes");
const isList = () => document.querySelector("input[name=form]:checked").value === "list";
const classValue = (node, key) => (key === "name" ? names[node] : data.nodes[key][node]);
const below = (node) => sorted(children[node], classOrder, classValue).flatMap((child) => [child, ...(opened.has(child) ? below(child) : [])]);
const showClasses = () => {
  const list = isList();
  const shown = list ? sorted(leaves, classOrder, classValue) : below(0);
  byId("class-table").classList.toggle("list", list || isFlat);
  byId("forms").hidden = isFlat;
  for (const button of ["open-all", "close-all"]) byId(button).hidden = list || isFlat;
  const rows = document.createDocumentFragment();
  for (const node of shown) {
    const row = rowOf(node);
    const inner = children[node].length > 0;
    row.setAttribute("aria-level", list ? 1 : pathOf(node).length);
    if (inner) row.setAttribute("aria-expanded", String(opened.has(node)));
    row.querySelector(".mark").textContent = !inner ? "" : opened.has(node) ? "▾" : "▸";
    rows.append(row);
  }
  body.replaceChildren(rows);
  if (body.firstChild && body.querySelector("[tabindex='0']") === null) reachable(body.firstChild);
};
const classOrder = sortable(byId("class-table"), showClasses);
for (const radio of document.querySelectorAll("input[name=form]")) radio.addEventListener("change", showClasses);
showClasses();

const focus = (row) => {
  reachable(row);
  row.focus();
};
const setOpen = (node, open) => {
  if (children[node].length === 0) return;
  if (open) opened.add(node); else opened.delete(node);
  showClasses();
};
body.addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  const node = Number(row.dataset.node);
  setOpen(node, !opened.has(node));
  focus(row);
});
body.addEventListener("keydown", (event) => {
  const row = event.target.closest("tr");
  const node = Number(row.dataset.node);
  const inner = children[node].length > 0;
  const isOpen = opened.has(node);
  const turnTo = (open) => { setOpen(node, open); return row; };
  const keys = {
    ArrowDown: () => row.nextSibling,
    ArrowUp: () => row.previousSibling,
    Home: () => body.firstChild,
    End: () => body.lastChild,
    ArrowRight: () => (inner && isOpen ? row.nextSibling : turnTo(true)),
    ArrowLeft: () => (inner && isOpen ? turnTo(false) : isList() ? null : made.get(parents[node])),
    Enter: () => turnTo(!isOpen),
    " ": () => turnTo(!isOpen),
  };
  if (keys[event.key] === undefined) return;
  event.preventDefault();
  const target = keys[event.key]();
  if (target) focus(target);
});
byId("open-all").addEventListener("click", () => {
  children.forEach((list, node) => { if (node > 0 && list.length > 0) opened.add(node); });
  showClasses();
});
byId("close-all").addEventListener("click", () => { opened.clear(); showClasses(); });
byId("find-class").addEventListener("input", (event) => {
  for (const row of made.values()) row.classList.remove("hit");
  const text = event.target.value.trim().toLowerCase();
  const hits = text === "" ? [] : names.flatMap((name, node) => (node > 0 && name.toLowerCase().includes(text) ? [node] : []));
  byId("found-classes").textContent = text === "" ? "" : `${hits.length} found`;
  for (const node of hits.slice(0, 50)) {
    for (const step of pathOf(node).slice(0, -1)) opened.add(step);
    rowOf(node).classList.add("hit");
  }
  showClasses();
  const hit = body.querySelector(".hit");
  if (hit) hit.scrollIntoView({ block: "nearest" });
});
