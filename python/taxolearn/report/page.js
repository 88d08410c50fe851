"use strict";
(() => {
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
  const rowOf = (node) => {
    if (made.has(node)) return made.get(node);
    const label = element("div", { class: "label" }, element("span", { class: "mark", "aria-hidden": "true" }), element("span", {}, ...breakable(names[node])));
    label.style.setProperty("--level", pathOf(node).length - 1);
    const row = element("tr", { tabindex: -1, "data-node": node }, element("td", {}, label),
      element("td", { class: "number" }, data.nodes.support[node].toLocaleString("en")), measure(data.nodes.recall[node]), measure(data.nodes.precision[node]));
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

  const svg = (tag, attributes, ...content) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  };

  // Confusions: a map of the children of a node, and a list of pairs of classes.
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
    byId("pairs").replaceChildren(...sorted(chosen, pairOrder, pairValue).slice(0, 300).map(([truth, answer, count]) => element("tr", {}, element("td", { class: "number" }, String(count)),
      element("td", {}, ...breakable(names[truth])), element("td", {}, ...breakable(names[answer])))));
    if (chosen.length === 0) byId("pairs").append(element("tr", {}, element("td", { colspan: 3, class: "empty" }, "none")));
  };
  const pairValue = ([truth, answer, count], key) => ({ truth: names[truth], answer: names[answer], count })[key];
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

  // Plots.
  const frame = { left: 64, right: 26, top: 12, bottom: 46, width: 560, height: 300 };
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
      plot.append(svg("text", { x: x((xMax * k) / 5), y: frame.height - frame.bottom + 21, "text-anchor": "middle" }, percent((xMax * k) / 5, 0)));
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
  const showShare = () => {
    const wanted = Number(byId("share").value) / 100;
    let place = 0;
    curve.rejected.forEach((share, k) => { if (share <= wanted + 1e-9) place = k; });
    const total = data.rows, accepted = Math.round(total * (1 - curve.rejected[place])), aside = total - accepted;
    spot.setAttribute("cx", reject.x(curve.rejected[place]));
    spot.setAttribute("cy", reject.y(curve.error[place]));
    const wrong = `${percent(curve.error[place])} of the answers are wrong.`;
    byId("reject-numbers").textContent = aside === 0 ? `Of ${total.toLocaleString("en")} rows none is set aside, and ${wrong}` :
      `Of ${total.toLocaleString("en")} rows ${aside.toLocaleString("en")} are set aside (${percent(curve.rejected[place])}), those whose answer ` +
      `has a probability below ${percent(curve.threshold[place])}. Among the other ${accepted.toLocaleString("en")}, ${wrong}`;
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
      const item = element("li", {}, element("span", { class: "id" }, `${data.id_name} ${each.id} `), each.text ? element("q", {}, each.text) : "", element("div", {}, "answer ", element("span", { class: "answer" }, names[each.answer]),
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

  // Documents, some at a time.
  const step = 20;
  let shownDocuments = step;
  const documentValue = ([id, text, truth, answer, likely], key) => ({ id, text, truth: names[truth], answer: names[answer], likely })[key];
  const hasTexts = data.documents.some(([, text]) => text !== "");
  byId("document-table").classList.toggle("textless", !hasTexts);
  const showDocuments = () => {
    const find = byId("find-document").value.trim().toLowerCase();
    const wrongOnly = byId("wrong-only").checked;
    const hits = sorted(data.documents.filter(([id, text, truth, answer]) => !(wrongOnly && truth === answer) &&
      (find === "" || [id, text, names[truth], names[answer]].some((part) => part.toLowerCase().includes(find)))), documentOrder, documentValue);
    byId("found-documents").textContent = `${hits.length.toLocaleString("en")} of ${data.documents.length.toLocaleString("en")}` +
      (hits.length > shownDocuments ? `, ${shownDocuments.toLocaleString("en")} shown` : "");
    byId("more-documents").hidden = hits.length <= shownDocuments;
    byId("document-rows").replaceChildren(...hits.slice(0, shownDocuments).map(([id, text, truth, answer, likely]) => element("tr", {},
      element("td", {}, id), element("td", {}, text), element("td", {}, ...breakable(names[truth])),
      element("td", { class: truth === answer ? "truth" : "answer" }, ...breakable(names[answer])), element("td", { class: "number" }, percent(likely)))));
  };
  const showFirstDocuments = () => { shownDocuments = step; showDocuments(); };
  const documentOrder = sortable(byId("document-table"), showFirstDocuments);
  byId("find-document").addEventListener("input", showFirstDocuments);
  byId("wrong-only").addEventListener("change", showFirstDocuments);
  byId("more-documents").addEventListener("click", () => { shownDocuments += step; showDocuments(); });
  showDocuments();
})();
