// The pictures of docs/why.md: each figure is a function of its slider that draws curves and says one number.
(() => {
  const SVG = "http://www.w3.org/2000/svg", WIDE = 640, HIGH = 220, EDGE = 34;
  const steps = (from, to, f) => Array.from({length: 161}, (_, i) => from + (to - from) * i / 160).map(x => [x, f(x)]);

  function coins(seed) { // a small generator, so that a picture is the same each time: simulated data only
    return () => { seed = (seed + 0x6d2b79f5) | 0; let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t; return ((t ^ (t >>> 14)) >>> 0) / 4294967296; };
  }
  function attack(k, sigma) { // the bias of the vote of k features on 500 rows
    const next = coins(17), n = 500, sum = new Array(n).fill(0);
    for (let j = 0; j < k; j++) {
      const agrees = sum.map(() => next() < .5), share = agrees.filter(Boolean).length / n;
      const bell = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
      const sign = Math.sign(share + sigma * bell - .5);
      agrees.forEach((yes, i) => { sum[i] += sign * (yes ? 1 : -1); });
    }
    return sum.filter(s => s > 0).length / n + sum.filter(s => s === 0).length / (2 * n) - .5;
  }
  const FIGURES = {
    noise: e => ({
      from: [-6, 0], to: [7, 1.5], told: ["largest ratio of the two curves", Math.exp(e)],
      curves: { "without the row": steps(-6, 7, x => e / 2 * Math.exp(-e * Math.abs(x))),
        "with the row": steps(-6, 7, x => e / 2 * Math.exp(-e * Math.abs(x - 1))) },
    }),
    budget: k => {
      const total = j => { const r = j * 1e-4; return r + 2 * Math.sqrt(r * Math.log(1e6)); };
      return { from: [0, 0], to: [400, 6], told: ["epsilon of all answers together", total(k)], at: [k, total(k)],
        curves: { "zero-concentrated": steps(0, 400, total), "plain addition": steps(0, 400, j => j * total(1)) } };
    },
    attack: k => {
      const sizes = Array.from({length: 11}, (_, i) => 10 + (k - 10) * i / 10).map(Math.round);
      return { from: [0, -.05], to: [400, .5], told: ["bias of the vote, exact answers", attack(k, 0)],
        curves: { "exact answers": sizes.map(j => [j, attack(j, 0)]), "answers with noise 0.1": sizes.map(j => [j, attack(j, .1)]) } };
    },
    leaveout: m => {
      const n = 10000, within = j => Math.sqrt(1e6 / (16 * (n - j) * (n - 1)) + Math.log(40) / (2 * j));
      return { from: [0, 0], to: [n, .2], told: ["half-width", within(m)], at: [m, within(m)],
        curves: { "within": steps(100, 9900, within) } };
    },
    votes: count => {
      const within = j => Math.sqrt(Math.log(40) / (2 * j)) / .8;
      return { from: [0, 0], to: [20000, .18], told: ["half-width", within(count)], at: [count, within(count)],
        curves: { "within": steps(100, 20000, within) } };
    },
  };
  function part(kind, attributes, words) {
    const made = document.createElementNS(SVG, kind);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    if (words !== undefined) made.textContent = words;
    return made;
  }
  function draw(picture, figure) {
    const x = v => EDGE + (v - figure.from[0]) / (figure.to[0] - figure.from[0]) * (WIDE - 2 * EDGE);
    const y = v => HIGH - EDGE - (v - figure.from[1]) / (figure.to[1] - figure.from[1]) * (HIGH - 2 * EDGE);
    const inside = v => Math.min(Math.max(v, figure.from[1]), figure.to[1]);
    picture.replaceChildren(part("path", {d: `M${EDGE} 10V${y(0)}H${WIDE - EDGE}`, class: "axis"}));
    for (const v of [figure.from[0], figure.to[0]]) picture.append(part("text", {x: x(v), y: HIGH - 12, "text-anchor": "middle"}, v.toLocaleString("en")));
    picture.append(part("text", {x: EDGE - 4, y: y(figure.to[1]) + 4, "text-anchor": "end"}, figure.to[1]));
    Object.entries(figure.curves).forEach(([name, points], i) => {
      picture.append(part("path", {class: `curve c${i}`, d: "M" + points.filter(([, b]) => b <= figure.to[1]).map(([a, b]) => `${x(a).toFixed(1)} ${y(inside(b)).toFixed(1)}`).join("L")}));
      picture.append(part("text", {x: WIDE - EDGE, y: 24 + 16 * i, "text-anchor": "end", class: `name c${i}`}, name));
    });
    if (figure.at) picture.append(part("circle", {cx: x(figure.at[0]), cy: y(inside(figure.at[1])), r: 5}));
  }
  for (const place of document.querySelectorAll(".figure[data-figure]")) {
    const said = place.dataset, make = FIGURES[said.figure];
    const label = document.createElement("label"), slider = document.createElement("input"), told = document.createElement("output");
    Object.assign(slider, {type: "range", min: said.min, max: said.max, step: said.step, value: said.value});
    const picture = part("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": said.label});
    const refresh = () => {
      const figure = make(Number(slider.value));
      draw(picture, figure);
      told.textContent = `${said.label} ${Number(slider.value).toLocaleString("en")}: ${figure.told[0]} ${figure.told[1].toPrecision(4)}`;
    };
    slider.addEventListener("input", refresh);
    slider.setAttribute("aria-label", said.label);
    label.append(slider, told);
    place.append(label, picture);
    refresh();
  }
})();
