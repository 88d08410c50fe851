// What if the least sure rows are set aside?
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

// Mistakes.
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
