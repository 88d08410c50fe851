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

const reliabilityPlot = byId("reliability-plot");
const reliability = axes("Frequency against probability", reliabilityPlot.dataset.x, reliabilityPlot.dataset.y, 1, 1);
reliability.plot.append(svg("path", { class: "ideal", d: line([[reliability.x(0), reliability.y(0)], [reliability.x(1), reliability.y(1)]]) }));
const points = data.reliability.confidence.map((value, k) => [reliability.x(value), reliability.y(data.reliability.frequency[k])]);
reliability.plot.append(svg("path", { class: "curve", d: line(points) }));
points.forEach(([a, b], k) => reliability.plot.append(svg("circle", { class: "spot", r: 4, cx: a, cy: b }, svg("title", {},
  `${data.reliability.rows[k].toLocaleString("en")} ${reliabilityPlot.dataset.what}: promised ${percent(data.reliability.confidence[k])}, right ${percent(data.reliability.frequency[k])}`))));
reliabilityPlot.append(reliability.plot);

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
