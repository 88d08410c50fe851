const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const percent = (value, digits = 1) => (value === null ? "–" : (100 * value).toFixed(digits) + "%");
const names = data.nodes.names;

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// A name that may break after what divides its parts.
const breakable = (name) => name.split(/(?<=[/.:_\\-])/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));

// Light or dark: as the system says, until the button is used.
const root = document.documentElement;
const dark = window.matchMedia("(prefers-color-scheme: dark)");
root.classList.toggle("dark", dark.matches);
dark.addEventListener("change", () => root.classList.toggle("dark", dark.matches));
byId("theme").addEventListener("click", () => root.classList.toggle("dark"));

// Tables whose heads are buttons that sort: columns of numbers begin with the largest, a second click turns the order around.
const collator = new Intl.Collator("en", { numeric: true });
const sortable = (table, show) => {
  const heads = [...table.tHead.querySelectorAll("th")];
  const first = heads.find((head) => head.getAttribute("aria-sort") !== "none");
  const order = { key: first ? first.dataset.key : null, up: false };
  for (const head of heads) head.querySelector("button").addEventListener("click", () => {
    order.up = head.dataset.key === order.key ? !order.up : !head.classList.contains("number");
    order.key = head.dataset.key;
    for (const each of heads) each.setAttribute("aria-sort", each !== head ? "none" : order.up ? "ascending" : "descending");
    show();
  });
  return order;
};
// A sorted copy; what has no value comes last, and equals stay as they are.
const sorted = (list, order, valueOf) => order.key === null ? list : [...list].sort((a, b) => {
  const x = valueOf(a, order.key), y = valueOf(b, order.key);
  if (x === null || y === null) return (x === null) - (y === null);
  const difference = typeof x === "number" ? x - y : collator.compare(x, y);
  return order.up ? difference : -difference;
});

const svg = (tag, attributes, ...content) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
};

// Features that speak for or against an answer.
const reasonOf = (reason, kind) => {
  const made = element("div", { class: "words" }, `for `, element("span", { class: kind }, reason.node), ": ");
  reason.words.forEach(([word, part], k) => made.append(k ? ", " : "", part > 0 ? element("b", {}, word) : word, ` ${part > 0 ? "+" : "−"}${Math.abs(part).toFixed(2)}`));
  return made;
};
