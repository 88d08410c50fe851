// A threshold that all labels share.
const byThreshold = data.thresholds;
const trade = axes("Scores by threshold", "threshold of the probability", "score", 1, 1);
const lines = [["micro_f1", "micro F1"], ["macro_f1", "macro F1"], ["precision", "precision"], ["recall", "recall"]];
const thresholdSpots = lines.map(([key, name], k) => {
  const path = byThreshold.threshold.map((value, at) => [trade.x(value), trade.y(byThreshold[key][at])]);
  const spot = svg("circle", { class: `spot tone${k}`, r: 4 }, svg("title", {}, name));
  trade.plot.append(svg("path", { class: `curve tone${k}`, d: line(path) }), spot);
  return spot;
});
byId("threshold-plot").append(trade.plot);
byId("threshold-key").append(...lines.map(([, name], k) => element("span", { class: `key tone${k}` }, name)));
const showThreshold = () => {
  const wanted = Number(byId("threshold").value) / 100;
  let place = 0;
  byThreshold.threshold.forEach((value, k) => { if (value <= wanted + 1e-9) place = k; });
  thresholdSpots.forEach((spot, k) => {
    spot.setAttribute("cx", trade.x(byThreshold.threshold[place]));
    spot.setAttribute("cy", trade.y(byThreshold[lines[k][0]][place]));
  });
  byId("threshold-numbers").textContent = `Labels above ${percent(byThreshold.threshold[place])}: ${byThreshold.labels_per_row[place].toFixed(2)} per row, ` +
    lines.map(([key, name]) => `${name} ${percent(byThreshold[key][place])}`).join(", ") + ".";
};
byId("threshold").addEventListener("input", showThreshold);
showThreshold();

// Numbers of labels.
const mostBars = 15;
const lumped = (counts) => (counts.length <= mostBars ? counts : [...counts.slice(0, mostBars - 1), counts.slice(mostBars - 1).reduce((sum, count) => sum + count, 0)]);
const sizes = { truth: lumped(data.sizes.truth), answer: lumped(data.sizes.answer) };
const sizePlot = svg("svg", { viewBox: `0 0 ${frame.width} 240`, role: "img", "aria-label": "Numbers of labels" });
const mostRows = Math.max(...sizes.truth, ...sizes.answer, 1);
const slot = (frame.width - 40) / sizes.truth.length;
sizes.truth.forEach((_, size) => {
  const isLast = size === mostBars - 1 && data.sizes.truth.length > mostBars;
  ["truth", "answer"].forEach((kind, k) => {
    const count = sizes[kind][size], height = (170 * count) / mostRows, width = Math.min(0.4 * slot, 40);
    const x = 20 + slot * (size + 0.5) + (k - 1) * width;
    sizePlot.append(svg("rect", { class: `size ${kind}`, x, y: 200 - height, width: width - 1, height }, svg("title", {},
      `${count.toLocaleString("en")} rows ${k ? "are answered" : "have"} ${size}${isLast ? " or more" : ""} labels`)));
  });
  sizePlot.append(svg("text", { x: 20 + slot * (size + 0.5), y: 217, "text-anchor": "middle" }, isLast ? `${size}+` : String(size)));
});
sizePlot.append(svg("text", { x: frame.width / 2, y: 235, "text-anchor": "middle" }, "labels in a row"));
byId("size-plot").append(sizePlot);

// Mistakes: what the model said about the labels that a row has or was answered.
const joined = (parts) => parts.flatMap((part, k) => (k ? [", ", part] : [part]));
let shownMistakes = 0;
const showMistakes = () => {
  for (const each of data.mistakes.slice(shownMistakes, shownMistakes + 10)) {
    const told = [["right", true, true, "truth"], ["wrong", false, true, "answer"], ["missed", true, false, "missed"]].flatMap(([word, isTrue, isAnswered, kind]) => {
      const labels = each.labels.filter(([, , a, b]) => a === isTrue && b === isAnswered);
      return labels.length === 0 ? [] : [element("div", {}, `${word} `, ...joined(labels.map(([node, p]) => element("span", {}, element("span", { class: kind }, ...breakable(names[node])), ` ${percent(p)}`))))];
    });
    if (each.unknown > 0) told.push(element("div", {}, `missed ${each.unknown} that the model does not know`));
    const item = element("li", {}, element("span", { class: "id" }, `${data.id_name} ${each.id}, log loss ${each.loss.toFixed(2)} `), each.text ? element("q", {}, each.text) : "", ...told);
    for (const reason of each.reasons) item.append(reasonOf(reason, reason.is_true ? "missed" : "answer"));
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
const listed = (nodes) => nodes.map((node) => names[node]).join(", ");
const documentValue = ([id, text, truth, answer, wrong], key) => ({ id, text, truth: listed(truth), answer: listed(answer), wrong })[key];
const hasTexts = data.documents.some(([, text]) => text !== "");
byId("document-table").classList.toggle("textless", !hasTexts);
const marked = (nodes, others, kind) => nodes.length === 0 ? [element("span", { class: "empty" }, "none")]
  : joined(nodes.map((node) => element("span", { class: others.includes(node) ? "truth" : kind }, ...breakable(names[node]))));
const showDocuments = () => {
  const find = byId("find-document").value.trim().toLowerCase();
  const wrongOnly = byId("wrong-only").checked;
  const hits = sorted(data.documents.filter(([id, text, truth, answer, wrong]) => !(wrongOnly && wrong === 0) &&
    (find === "" || [id, text, listed(truth), listed(answer)].some((part) => part.toLowerCase().includes(find)))), documentOrder, documentValue);
  byId("found-documents").textContent = `${hits.length.toLocaleString("en")} of ${data.documents.length.toLocaleString("en")}` +
    (hits.length > shownDocuments ? `, ${shownDocuments.toLocaleString("en")} shown` : "");
  byId("more-documents").hidden = hits.length <= shownDocuments;
  byId("document-rows").replaceChildren(...hits.slice(0, shownDocuments).map(([id, text, truth, answer, wrong]) => element("tr", {},
    element("td", {}, id), element("td", {}, text), element("td", {}, ...marked(truth, answer, "missed")), element("td", {}, ...marked(answer, truth, "answer")),
    element("td", { class: "number" }, String(wrong)))));
};
const showFirstDocuments = () => { shownDocuments = step; showDocuments(); };
const documentOrder = sortable(byId("document-table"), showFirstDocuments);
byId("find-document").addEventListener("input", showFirstDocuments);
byId("wrong-only").addEventListener("change", showFirstDocuments);
byId("more-documents").addEventListener("click", () => { shownDocuments += step; showDocuments(); });
showDocuments();
