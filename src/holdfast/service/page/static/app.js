// What a page does beyond its forms: charts, the race, and small comforts. Every page works without it.
"use strict";

(() => {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = new Set();
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = value => value.toLocaleString("en", {maximumSignificantDigits: 4});

  // A chart that takes its colours from the page, and is drawn anew when they or its width change.
  class Chart {
    // `y` and `x` are the ends of the axes and `titles` their names; `digits` those of a percentage, or none; `band` a
    // half-width to shade.
    constructor(place, data, {y, line, titles, x = null, fill = false, step = false, digits = null}) {
      Object.assign(this, {place, data, y, line, titles, x, fill, step, digits, band: 0, lines: [], width: 0});
      new ResizeObserver(() => place.clientWidth !== this.width && this.draw()).observe(place);
      charts.add(this);
      this.draw();
    }

    draw() {
      this.plot?.destroy();
      this.width = this.place.clientWidth;
      if (!this.width) return;
      const axis = {stroke: colour("--soft"), grid: {stroke: colour("--line"), width: 1}, ticks: {show: false},
        font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20};
      // As wide as the longest of its numbers, so that none is clipped.
      const wide = (_, texts) => 16 + 7.5 * Math.max(3, ...(texts ?? []).map(text => text.length));
      this.plot = new uPlot({
        width: this.width, height: 240, cursor: {show: false}, legend: {show: false},
        scales: {x: {time: false, range: this.x ?? undefined}, y: {range: this.y}},
        axes: [{...axis, size: 32, label: this.titles[0], values: (_, ticks) => ticks.map(t => Number.isInteger(t) ? t.toLocaleString("en") : "")},
          {...axis, size: wide, label: this.titles[1], values: (_, ticks) => ticks.map(
            t => this.digits === null ? t.toFixed(1) : `${(100 * t).toFixed(this.digits)}%`)}],
        bands: [{series: [2, 3], fill: colour(this.line) + "22"}],
        series: [{}, {
          stroke: colour(this.line), width: 2.5, points: {show: false},
          fill: this.fill ? colour(this.line) + "22" : undefined,
          paths: this.step ? uPlot.paths.stepped({align: 1}) : undefined,
        }, {points: {show: false}}, {points: {show: false}}],
        hooks: {draw: [plot => this.lines.forEach(each => this.level(plot, each))]},
      }, this.banded(), this.place);
    }

    banded() {
      const [places, values] = this.data, edge = by => this.band ? values.map(value => value + by) : values.map(() => null);
      return [places, values, edge(this.band), edge(-this.band)];
    }

    // A dashed line across, with its name.
    level(plot, {at, name, line}) {
      const y = Math.round(plot.valToPos(at, "y", true)), {left, width} = plot.bbox, pen = plot.ctx;
      pen.save();
      pen.strokeStyle = pen.fillStyle = colour(line);
      pen.lineWidth = 2 * devicePixelRatio;
      pen.setLineDash([6 * devicePixelRatio, 5 * devicePixelRatio]);
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(left + width, y);
      pen.stroke();
      pen.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
      pen.textAlign = "right";
      pen.fillText(name, left + width - 6 * devicePixelRatio, y - 6 * devicePixelRatio);
      pen.restore();
    }

    show(data) {
      this.data = data;
      this.plot?.setData(this.banded());
    }
  }
  dark.addEventListener("change", () => charts.forEach(chart => chart.draw()));

  for (const place of document.querySelectorAll("[data-burn]")) {
    const points = JSON.parse(place.dataset.burn), least = Math.min(...points.map(([, left]) => left));
    new Chart(place, [points.map(([charge]) => charge), points.map(([, left]) => left)],
      {y: [least > 0.8 ? 1 - 1.4 * (1 - least) : 0, 1], line: "--kelp", titles: ["charge", "left of your budget"], fill: true, step: true,
        digits: Math.max(0, Math.min(7, Math.ceil(-Math.log10(100 * (1 - least))) + 1))});
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    });
  }

  // A sensible accuracy for each kind, until somebody types their own.
  const ask = document.getElementById("ask"), amount = document.getElementById("amount");
  if (ask && amount) {
    let own = amount.value !== "";
    const usual = JSON.parse(amount.dataset.amounts);
    const suggest = () => { if (!own) amount.value = usual[ask.elements.kind.value] ?? ""; };
    amount.addEventListener("input", () => { own = amount.value !== ""; });
    ask.addEventListener("input", event => { if (event.target.name === "kind") suggest(); }, {capture: true});
    // A field that this kind of question cannot do without is asked for before anything is sent.
    const needed = JSON.parse(ask.dataset.needed);
    const require = () => {
      for (const field of ask.elements) field.required = needed[ask.elements.kind.value].includes(field.name);
      amount.placeholder = amount.required ? "" : "as planned";
    };
    ask.addEventListener("change", require);
    suggest();
    require();
    document.addEventListener("keydown", event => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form === ask) ask.requestSubmit();
    });
    // An answer is marked as old while the form asks something else.
    const asks = () => [...new FormData(ask)].filter(([name]) => !["call", "form_token"].includes(name)).join("\n");
    let answered = asks();
    const mark = () => {
      const old = answered !== asks() && document.getElementById("answer").childElementCount > 0;
      document.getElementById("stale").hidden = !old;
      document.getElementById("answer").classList.toggle("old", old);
    };
    ask.addEventListener("input", mark);
    ask.addEventListener("change", mark);
    let sent = answered;
    ask.addEventListener("submit", () => { sent = asks(); }, {capture: true});
    document.addEventListener("asked", () => { answered = sent; requestAnimationFrame(mark); });
    document.addEventListener("asked", () => requestAnimationFrame(() => document.getElementById("answer")
      .scrollIntoView({block: "nearest", behavior: still.matches ? "auto" : "smooth"})));
  }

  const race = document.getElementById("race");
  if (race) {
    const by = id => document.getElementById(id), names = ["ordinary", "guarded"];
    const charts = Object.fromEntries(names.map(name => [name, new Chart(by(`${name}-chart`), [[], []],
      {y: [0.3, 1], x: [0, 2000], titles: ["submission", "best score shown"], line: name === "ordinary" ? "--noise" : "--kelp"})]));
    let source = null, ending = null;

    const show = points => names.forEach(name => charts[name].show([points.done, points[name]]));

    const start = () => {
      source?.close();
      const points = {done: [], ordinary: [], guarded: []};
      let of = 0, width = 0;
      ending = null;
      by("reveal").disabled = true;
      by("verdict").textContent = "";
      names.forEach(name => { charts[name].lines = []; by(`${name}-fresh`).textContent = ""; });
      source = new EventSource(`/demo/run?attack=${encodeURIComponent(race.elements.attack.value)}`);
      source.onmessage = ({data}) => {
        const event = JSON.parse(data);
        if (event.of) {
          ({of, width} = event);
          by("guarded-width").textContent = `± ${short(width)}`;
          charts.guarded.band = width;
        } else if (event.done) {
          points.done.push(event.done);
          names.forEach(name => {
            points[name].push(event[name]);
            by(`${name}-best`).textContent = event[name].toFixed(3);
          });
          by("progress").textContent = `${event.done.toLocaleString("en")} of ${of.toLocaleString("en")} submissions`;
          if (!still.matches || event.done === of) show(points);
        } else {
          source.close();
          ending = event;
          by("reveal").disabled = false;
          by("reveal").classList.remove("quiet");
          by("progress").textContent = "The attack is over. What are the two winners worth on data that nobody has seen?";
        }
      };
      source.onerror = () => {
        source.close();
        by("progress").textContent = "The race was interrupted: others may be watching. Start it again in a few seconds.";
      };
    };

    const reveal = () => {
      if (!ending) return;
      names.forEach(name => {
        const truth = ending[`${name}_fresh`];
        by(`${name}-fresh`).textContent = `On fresh data: ${truth.toFixed(3)}`;
        charts[name].lines = [{at: truth, name: "fresh data", line: "--ink"}];
        charts[name].draw();
      });
      by("reveal").classList.add("quiet");
      by("verdict").textContent = `The ordinary board was off by ${Math.abs(+by("ordinary-best").textContent - ending.ordinary_fresh).toFixed(2)}; `
        + `the guarded one by ${Math.abs(+by("guarded-best").textContent - ending.guarded_fresh).toFixed(2)}. `
        + `It is not deaf: an honest model of accuracy 0.8 then scored ${ending.honest.toFixed(3)} on it.`;
    };

    race.addEventListener("submit", event => { event.preventDefault(); start(); });
    by("reveal").addEventListener("click", reveal);
    addEventListener("pagehide", () => source?.close());
  }
})();
