"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const percent = (value, digits = 1) => (value === null ? "–" : (100 * value).toFixed(digits) + "\u00a0%");
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

  for (const [name, value] of data.summary) byId("summary").append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));

  // The tree. Children are made when a node is opened for the first time.
  const children = names.map(() => []);
  data.nodes.parents.forEach((parent, node) => { if (parent >= 0) children[parent].push(node); });
  for (const list of children) list.sort((a, b) => data.nodes.support[b] - data.nodes.support[a] || (names[a] < names[b] ? -1 : 1));
  const items = new Map();

  const measure = (value) => {
    const cell = element("span");
    if (value !== null) {
      const fill = element("i");
      fill.style.width = 100 * value + "%";
      cell.append(element("span", { class: "bar" }, fill));
    }
    cell.append(percent(value, 0));
    return cell;
  };

  const makeItem = (node, level) => {
    const inner = children[node].length > 0;
    const item = element("li", { role: "treeitem", "aria-level": level, tabindex: -1, "data-node": node });
    if (inner) item.setAttribute("aria-expanded", "false");
    const support = data.nodes.support[node];
    item.setAttribute("aria-label", `${names[node]}, ${support} rows, recall ${percent(data.nodes.recall[node], 0)}`);
    const label = element("span", {}, element("span", { class: "mark", "aria-hidden": "true" }, inner ? "▸" : ""), names[node]);
    label.style.paddingLeft = 1.1 * (level - 1) + "em";
    item.append(element("div", { class: "row" }, label, element("span", {}, support.toLocaleString("en")),
      measure(data.nodes.recall[node]), measure(data.nodes.precision[node])));
    items.set(node, item);
    return item;
  };

  const setOpen = (item, open) => {
    if (!item.hasAttribute("aria-expanded") || (item.getAttribute("aria-expanded") === "true") === open) return;
    item.setAttribute("aria-expanded", String(open));
    item.querySelector(".mark").textContent = open ? "▾" : "▸";
    let group = item.querySelector(":scope > ul");
    if (group === null) {
      group = element("ul", { role: "group" });
      const level = Number(item.getAttribute("aria-level")) + 1;
      for (const child of children[Number(item.dataset.node)]) group.append(makeItem(child, level));
      item.append(group);
    }
    group.hidden = !open;
  };

  const tree = byId("nodes");
  for (const child of children[0]) tree.append(makeItem(child, 1));
  if (tree.firstChild) tree.firstChild.tabIndex = 0;

  const focus = (item) => {
    const old = tree.querySelector("[tabindex='0']");
    if (old) old.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  };
  const visible = () => [...tree.querySelectorAll("[role=treeitem]")].filter((item) => item.offsetParent !== null);

  tree.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row === null) return;
    const item = row.parentElement;
    setOpen(item, item.getAttribute("aria-expanded") !== "true");
    focus(item);
  });
  tree.addEventListener("keydown", (event) => {
    const item = event.target.closest("[role=treeitem]");
    const expanded = item.getAttribute("aria-expanded");
    const list = visible();
    const place = list.indexOf(item);
    const go = (target) => { if (target) focus(target); };
    const keys = {
      ArrowDown: () => go(list[place + 1]),
      ArrowUp: () => go(list[place - 1]),
      Home: () => go(list[0]),
      End: () => go(list[list.length - 1]),
      ArrowRight: () => (expanded === "false" ? setOpen(item, true) : expanded === "true" && go(list[place + 1])),
      ArrowLeft: () => (expanded === "true" ? setOpen(item, false) : go(item.parentElement.closest("[role=treeitem]"))),
      Enter: () => setOpen(item, expanded !== "true"),
      " ": () => setOpen(item, expanded !== "true"),
    };
    if (keys[event.key] === undefined) return;
    event.preventDefault();
    keys[event.key]();
  });

  const pathOf = (node) => {
    const path = [];
    for (let at = node; at > 0; at = data.nodes.parents[at]) path.unshift(at);
    return path;
  };
  const reveal = (node) => {
    for (const step of pathOf(node).slice(0, -1)) setOpen(items.get(step), true);
    return items.get(node);
  };
  byId("open-all").addEventListener("click", () => names.forEach((_, node) => {
    if (node > 0) setOpen(reveal(node), true);
  }));
  byId("close-all").addEventListener("click", () => { for (const item of items.values()) setOpen(item, false); });
  byId("find-class").addEventListener("input", (event) => {
    for (const item of tree.querySelectorAll(".hit")) item.classList.remove("hit");
    const text = event.target.value.trim().toLowerCase();
    const hits = text === "" ? [] : names.flatMap((name, node) => (node > 0 && name.toLowerCase().includes(text) ? [node] : []));
    byId("found-classes").textContent = text === "" ? "" : `${hits.length} found`;
    hits.slice(0, 50).forEach((node, place) => {
      const item = reveal(node);
      item.classList.add("hit");
      if (place === 0) item.scrollIntoView({ block: "nearest" });
    });
  });

  const svg = (tag, attributes, ...content) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  };

  // Confusions: a map of the children of a node, and a list of pairs of classes.
  const parents = data.nodes.parents;
  const wrongPairs = data.pairs.filter(([truth, answer]) => truth !== answer);
  const kindOf = ([truth, answer]) => (parents[truth] === parents[answer] ? "siblings" : "across");
  const childBelow = (node, top) => {
    for (let at = node; at > 0; at = parents[at]) if (parents[at] === top) return at;
    return -1;
  };
  let chosenCell = null;
  const showPairs = () => {
    const kind = document.querySelector("input[name=kind]:checked").value;
    const text = byId("find-pair").value.trim().toLowerCase();
    const chosen = wrongPairs.filter((pair) => (kind === "all" || kindOf(pair) === kind) && (chosenCell === null || chosenCell.holds(pair)) &&
      (text === "" || names[pair[0]].toLowerCase().includes(text) || names[pair[1]].toLowerCase().includes(text)));
    const rows = chosen.reduce((sum, pair) => sum + pair[2], 0);
    byId("found-pairs").textContent = `${rows.toLocaleString("en")} wrong answers` + (chosenCell ? `: ${chosenCell.title}` : "");
    byId("all-pairs").hidden = chosenCell === null;
    byId("pairs").replaceChildren(...chosen.slice(0, 300).map(([truth, answer, count]) => element("tr", {}, element("td", {}, String(count)),
      element("td", {}, ...breakable(names[truth])), element("td", {}, ...breakable(names[answer])))));
    if (chosen.length === 0) byId("pairs").append(element("tr", {}, element("td", { colspan: 3, class: "empty" }, "none")));
  };
  if (!data.is_tree) byId("kinds").hidden = true;
  for (const radio of document.querySelectorAll("input[name=kind]")) radio.addEventListener("change", showPairs);
  byId("find-pair").addEventListener("input", showPairs);
  byId("all-pairs").addEventListener("click", () => { chosenCell = null; showPairs(); });

  // The map: truth down, answers across, for the children of a node that have most rows.
  const mapSize = 40;
  const shortName = (node, top) => {
    const name = top > 0 && names[node].startsWith(names[top] + "/") ? names[node].slice(names[top].length + 1) : names[node];
    return name.length > 24 ? name.slice(0, 23) + "…" : name;
  };
  const showMap = (top) => {
    const known = children[top].filter((node) => data.nodes.support[node] > 0 || data.nodes.answered[node] > 0);
    const kids = known.slice(0, mapSize);
    const place = new Map(kids.map((node, k) => [node, k]));
    const others = kids.length; // the last column: every other answer
    const counts = kids.map(() => new Array(others + 1).fill(0));
    for (const [truth, answer, count] of data.pairs) {
      const row = place.get(childBelow(truth, top));
      if (row !== undefined) counts[row][place.get(childBelow(answer, top)) ?? others] += count;
    }
    const hasOthers = counts.some((row) => row[others] > 0);
    const columns = others + (hasOthers ? 1 : 0);
    const side = Math.max(10, Math.min(30, Math.floor(420 / columns)));
    const longest = 7 * Math.max(...kids.map((node) => shortName(node, top).length), hasOthers ? 9 : 0); // at 12 pixels
    const left = longest + 14, above = 0.82 * longest + 16, width = left + side * columns + 0.57 * longest, height = above + side * kids.length + 6;
    const plot = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Answers for the classes of ${names[top]}` });
    plot.style.width = width + "px";
    const label = (node, k) => (k === others ? "elsewhere" : shortName(node, top));
    for (let k = 0; k < columns; ++k) {
      const x = left + side * (k + 0.6);
      plot.append(svg("text", { transform: `translate(${x} ${above - 6}) rotate(-55)` }, label(kids[k], k)));
    }
    kids.forEach((truth, row) => {
      const total = counts[row].reduce((sum, count) => sum + count, 0);
      plot.append(svg("text", { x: left - 8, y: above + side * (row + 0.5) + 4, "text-anchor": "end" }, shortName(truth, top)));
      for (let column = 0; column < columns; ++column) {
        const count = counts[row][column];
        const title = `${shortName(truth, top)} answered as ${label(kids[column], column)}: ${count} of ${total} rows, ${percent(total ? count / total : 0)}`;
        const cell = svg("rect", { class: column === row ? "cell right" : "cell wrong", x: left + side * column, y: above + side * row, width: side - 1, height: side - 1 },
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

  // Plots.
  const frame = { left: 52, right: 26, top: 12, bottom: 40, width: 560, height: 300 };
  const axes = (title, xLabel, yLabel, xMax, yMax) => {
    const x = (value) => frame.left + ((frame.width - frame.left - frame.right) * value) / xMax;
    const y = (value) => frame.height - frame.bottom - ((frame.height - frame.top - frame.bottom) * value) / yMax;
    const plot = svg("svg", { viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img", "aria-label": title });
    // Ticks at round numbers: 1, 2 or 5 times a power of ten apart, about five of them.
    const rough = yMax / 5;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    for (let tick = 0; tick <= yMax * 1.0001; tick += step) {
      plot.append(svg("line", { class: "grid", x1: x(0), x2: x(xMax), y1: y(tick), y2: y(tick) }));
      plot.append(svg("text", { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }, percent(tick, step < 0.01 ? 1 : 0)));
    }
    for (let k = 0; k <= 5; ++k)
      plot.append(svg("text", { x: x((xMax * k) / 5), y: frame.height - frame.bottom + 16, "text-anchor": "middle" }, percent((xMax * k) / 5, 0)));
    plot.append(svg("text", { x: (frame.left + frame.width) / 2, y: frame.height - 6, "text-anchor": "middle" }, xLabel));
    plot.append(svg("text", { transform: `translate(12 ${frame.height / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel));
    return { plot, x, y };
  };
  const line = (points) => points.map(([a, b], k) => `${k ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

  const curve = data.curve;
  const most = Math.max(...curve.error, 0.01) * 1.05;
  const reject = axes("Error among the accepted rows", "set aside", "error", 1, most);
  const steps = [];
  curve.rejected.forEach((share, k) => {
    if (k > 0) steps.push([reject.x(share), reject.y(curve.error[k - 1])]);
    steps.push([reject.x(share), reject.y(curve.error[k])]);
  });
  const spot = svg("circle", { class: "spot", r: 5 });
  reject.plot.append(svg("path", { class: "curve", d: line(steps) }), spot);
  byId("reject-plot").append(reject.plot);
  const total = data.nodes.support[0];
  const showShare = () => {
    const wanted = Number(byId("share").value) / 100;
    let place = 0;
    curve.rejected.forEach((share, k) => { if (share <= wanted + 1e-9) place = k; });
    const accepted = Math.round(total * (1 - curve.rejected[place]));
    spot.setAttribute("cx", reject.x(curve.rejected[place]));
    spot.setAttribute("cy", reject.y(curve.error[place]));
    byId("reject-numbers").textContent = `Of ${total.toLocaleString("en")} rows ${(total - accepted).toLocaleString("en")} are set aside ` +
      `(${percent(curve.rejected[place])}), those whose answer has a probability below ${percent(curve.threshold[place])}. ` +
      `Among the other ${accepted.toLocaleString("en")}, ${percent(curve.error[place])} of the answers are wrong.`;
  };
  byId("share").addEventListener("input", showShare);
  showShare();

  const reliability = axes("Accuracy against confidence", "probability of the answer", "right", 1, 1);
  reliability.plot.append(svg("path", { class: "ideal", d: line([[reliability.x(0), reliability.y(0)], [reliability.x(1), reliability.y(1)]]) }));
  const points = data.reliability.confidence.map((value, k) => [reliability.x(value), reliability.y(data.reliability.frequency[k])]);
  reliability.plot.append(svg("path", { class: "curve", d: line(points) }));
  points.forEach(([a, b], k) => reliability.plot.append(svg("circle", { class: "spot", r: 4, cx: a, cy: b }, svg("title", {},
    `${data.reliability.rows[k]} rows: promised ${percent(data.reliability.confidence[k])}, right ${percent(data.reliability.frequency[k])}`))));
  byId("reliability-plot").append(reliability.plot);

  const variances = data.variances.filter(([, value]) => value > 0);
  if (variances.length === 0) {
    byId("variances").hidden = true;
    document.querySelector("nav a[href='#variances']").hidden = true;
  } else {
    const logs = variances.map(([, value]) => Math.log10(value));
    const low = Math.floor(Math.min(...logs, 0) - 0.2);
    const high = Math.ceil(Math.max(...logs, 0) + 0.2);
    const height = 22 * variances.length + 30;
    const plot = svg("svg", { viewBox: `0 0 560 ${height}`, role: "img", "aria-label": "Learned variances" });
    const at = (log) => 190 + (300 * (log - low)) / (high - low);
    for (let k = low; k <= high; ++k) {
      plot.append(svg("line", { class: "grid", x1: at(k), x2: at(k), y1: 4, y2: height - 24 }));
      plot.append(svg("text", { x: at(k), y: height - 8, "text-anchor": "middle" }, String(Number(Math.pow(10, k).toPrecision(1)))));
    }
    variances.forEach(([name, value], k) => {
      const shown = name.length > 28 ? "…" + name.slice(-27) : name;
      plot.append(svg("text", { x: 182, y: 22 * k + 19, "text-anchor": "end" }, shown));
      plot.append(svg("rect", { x: at(low), y: 22 * k + 8, width: Math.max(at(Math.log10(value)) - at(low), 1), height: 14, rx: 2 }));
      plot.append(svg("text", { x: at(Math.log10(value)) + 6, y: 22 * k + 19 }, value >= 1000 ? Math.round(value).toLocaleString("en") : value.toPrecision(3)));
    });
    byId("variances-plot").append(plot);
  }

  // Mistakes.
  const reasonOf = (reason, kind) => {
    const made = element("div", { class: "words" }, `for `, element("span", { class: kind }, reason.node), ": ");
    reason.words.forEach(([word, part], k) => made.append(k ? ", " : "", part > 0 ? element("b", {}, word) : word, ` ${part > 0 ? "+" : "−"}${Math.abs(part).toFixed(2)}`));
    return made;
  };
  let shownMistakes = 0;
  const showMistakes = () => {
    for (const each of data.mistakes.slice(shownMistakes, shownMistakes + 10)) {
      const item = element("li", {}, element("q", {}, each.text || "(no text)"), element("div", {}, "answer ", element("span", { class: "answer" }, names[each.answer]),
        ` ${percent(each.confidence)}, truth `, element("span", { class: "truth" }, names[each.truth]), ` ${percent(each.true)}`));
      each.reasons.forEach((reason, k) => item.append(reasonOf(reason, k === 0 ? "answer" : "truth")));
      byId("mistake-list").append(item);
    }
    shownMistakes += 10;
    byId("more-mistakes").hidden = shownMistakes >= data.mistakes.length;
  };
  byId("more-mistakes").addEventListener("click", showMistakes);
  showMistakes();
  if (data.mistakes.length === 0) byId("mistake-list").replaceWith(element("p", { class: "empty" }, "none"));

  // Documents.
  const showDocuments = () => {
    const text = byId("find-document").value.trim().toLowerCase();
    const hits = data.documents.filter(([words, truth, answer]) => text === "" || words.toLowerCase().includes(text) ||
      names[truth].toLowerCase().includes(text) || names[answer].toLowerCase().includes(text));
    byId("found-documents").textContent = `${hits.length.toLocaleString("en")} of ${data.documents.length.toLocaleString("en")}`;
    byId("document-rows").replaceChildren(...hits.slice(0, 100).map(([words, truth, answer, likely]) => element("tr", {}, element("td", {}, words),
      element("td", {}, ...breakable(names[truth])), element("td", { class: truth === answer ? "truth" : "answer" }, ...breakable(names[answer])), element("td", {}, percent(likely)))));
  };
  byId("find-document").addEventListener("input", showDocuments);
  showDocuments();
})();
