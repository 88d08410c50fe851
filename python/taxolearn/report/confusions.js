// Confusions: a map of the children of a node, and a list of pairs of classes.
const wrongPairs = data.pairs.filter(([truth, answer]) => truth !== answer);
const kindOf = ([truth, answer]) => (parents[truth] === parents[answer] ? "siblings" : "across");
const childBelow = (node, top) => {
  for (let at = node; at > 0; at = parents[at]) if (parents[at] === top) return at;
  return -1;
};
// Rows with several labels miss some with nothing in their place, or have others in place of nothing.
const partner = (node) => (node === 0 ? "nothing" : names[node]);
let chosenCell = null;
const showPairs = () => {
  const kind = document.querySelector("input[name=kind]:checked").value;
  const text = byId("find-pair").value.trim().toLowerCase();
  const chosen = wrongPairs.filter((pair) => (kind === "all" || kindOf(pair) === kind) && (chosenCell === null || chosenCell.holds(pair)) &&
    (text === "" || partner(pair[0]).toLowerCase().includes(text) || partner(pair[1]).toLowerCase().includes(text)));
  const rows = chosen.reduce((sum, pair) => sum + pair[2], 0);
  byId("found-pairs").textContent = `${rows.toLocaleString("en")} ${byId("pair-table").dataset.what}` + (chosenCell ? `: ${chosenCell.title}` : "");
  byId("all-pairs").hidden = chosenCell === null;
  byId("pairs").replaceChildren(...sorted(chosen, pairOrder, pairValue).slice(0, 300).map(([truth, answer, count]) => element("tr", {}, element("td", { class: "number" }, String(count)),
    element("td", {}, ...breakable(partner(truth))), element("td", {}, ...breakable(partner(answer))))));
  if (chosen.length === 0) byId("pairs").append(element("tr", {}, element("td", { colspan: 3, class: "empty" }, "none")));
};
const pairValue = ([truth, answer, count], key) => ({ truth: partner(truth), answer: partner(answer), count })[key];
const pairOrder = sortable(byId("pair-table"), showPairs);
if (!data.is_tree) byId("kinds").hidden = true;
for (const radio of document.querySelectorAll("input[name=kind]")) radio.addEventListener("change", showPairs);
byId("find-pair").addEventListener("input", showPairs);
byId("all-pairs").addEventListener("click", () => { chosenCell = null; showPairs(); });

// The map: truth down, answers across, for the children of a node that have most rows: at most this many, and no more than there is room for.
const mapSize = 40, smallestCell = 12, largestCell = 48;
const shortName = (node, top) => {
  const start = names[top].replace(/[^\p{L}\p{N}]\*$/u, ""); // a node named a/* holds a and all classes below
  const rest = top > 0 && names[node].startsWith(start) ? names[node].slice(start.length) : "";
  const name = /^[^\p{L}\p{N}]./u.test(rest) ? rest.slice(1) : names[node];
  return name.length > 24 ? name.slice(0, 23) + "…" : name;
};
const showMap = (top) => {
  const known = children[top].filter((node) => data.nodes.support[node] > 0 || data.nodes.answered[node] > 0);
  byId("confusions").querySelector(".two").classList.toggle("below", known.length > 16);
  const texts = [...known.slice(0, mapSize).map((node) => shortName(node, top)), "elsewhere"].map((name) => svg("text", {}, name));
  byId("map").replaceChildren(svg("svg", {}, ...texts));
  const longest = Math.max(...texts.map((text) => text.getComputedTextLength())); // in the reader's font
  const room = byId("map").clientWidth - 1.6 * longest - 20; // names stand on the left, and lean over the right edge
  const kids = known.slice(0, Math.min(mapSize, Math.max(2, Math.floor(room / smallestCell) - 1)));
  const place = new Map(kids.map((node, k) => [node, k]));
  const others = kids.length; // the last column: every other answer
  const counts = kids.map(() => new Array(others + 1).fill(0));
  for (const [truth, answer, count] of data.pairs) {
    const row = place.get(childBelow(truth, top));
    if (row !== undefined) counts[row][place.get(childBelow(answer, top)) ?? others] += count;
  }
  const hasOthers = counts.some((row) => row[others] > 0);
  const columns = others + (hasOthers ? 1 : 0);
  const side = Math.max(smallestCell, Math.min(largestCell, Math.floor(Math.min(room, Math.max(480, 18 * columns)) / columns)));
  const plot = svg("svg", { role: "img", "aria-label": `Answers for the classes of ${names[top]}` });
  const label = (node, k) => (k === others ? "elsewhere" : shortName(node, top));
  for (let k = 0; k < columns; ++k) {
    plot.append(svg("text", { transform: `translate(${side * (k + 0.6)} -6) rotate(-55)` }, label(kids[k], k)));
  }
  kids.forEach((truth, row) => {
    const total = counts[row].reduce((sum, count) => sum + count, 0);
    plot.append(svg("text", { x: -8, y: side * (row + 0.5) + 4, "text-anchor": "end" }, shortName(truth, top)));
    for (let column = 0; column < columns; ++column) {
      const count = counts[row][column];
      const title = `${shortName(truth, top)} answered as ${label(kids[column], column)}: ${count} of ${total} rows, ${percent(total ? count / total : 0)}`;
      const cell = svg("rect", { class: column === row ? "cell right" : "cell wrong", x: side * column, y: side * row, width: side - 1, height: side - 1 },
        svg("title", {}, title));
      cell.style.fillOpacity = count === 0 ? 0.04 : 0.12 + 0.88 * Math.sqrt(count / total);
      if (count > 0 && column !== row) cell.addEventListener("click", () => {
        const holds = ([a, b]) => childBelow(a, top) === truth && (place.get(childBelow(b, top)) ?? others) === column;
        chosenCell = { holds, title: `${shortName(truth, top)} answered as ${label(kids[column], column)}` };
        showPairs();
      });
      plot.append(cell);
    }
  });
  byId("map").replaceChildren(plot);
  const box = plot.getBBox();
  plot.setAttribute("viewBox", `${box.x - 2} ${box.y - 2} ${box.width + 4} ${box.height + 4}`);
  plot.style.width = box.width + 4 + "px";
  byId("map-note").textContent = known.length > kids.length ? `The ${kids.length} of ${known.length} with most rows.` : "";
  chosenCell = null;
  showPairs();
};
const confusedBelow = names.map(() => 0);
for (const [truth, answer, count] of wrongPairs) {
  const above = new Set([0, ...pathOf(answer)]);
  let at = truth;
  while (!above.has(at)) at = parents[at];
  confusedBelow[at] += count;
}
const mapped = names.map((_, node) => node).filter((node) => node === 0 || (children[node].length > 1 && confusedBelow[node] > 0));
mapped.sort((a, b) => (a === 0 ? -1 : b === 0 ? 1 : confusedBelow[b] - confusedBelow[a]));
byId("map-top").append(...mapped.map((node) => element("option", { value: node },
  `${node === 0 ? (data.is_tree ? "branches of the tree" : "all classes") : names[node]} (${confusedBelow[node].toLocaleString("en")} mixed up)`)));
byId("map-top").addEventListener("change", () => showMap(Number(byId("map-top").value)));
byId("map-label").hidden = mapped.length < 2;
showMap(0);
