"use strict";
// Every text goes into the page as a text node: names, causes and log lines come from hosts.
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const EVERY_MS = 1000;
  const STEEP = 100;  // a loss that falls to a share of 1/100 has a logarithmic scale
  const STATES = {running: "good", succeeded: "good", failed: "bad", lost: "bad", restarting: "warn"};
  const values = JSON.parse(document.getElementById("values").textContent);
  const page = document.getElementById("page");
  const problem = document.getElementById("problem");
  let facts = values.facts;
  let logs = values.logs;
  let steps = values.steps;
  let shownSteps = "newest";
  let sorted = {by: null, down: false};

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  function drawn(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function picture(width, height, label, ...shapes) {
    const made = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
    made.append(...shapes);
    return made;
  }

  const paragraphs = (lines, kind) => lines.map((line) => element("p", kind ? {class: kind} : {}, line));
  const section = (title, ...children) => element("section", {}, element("h2", {}, title), ...children);
  const figure = (name, value, kind) =>
    element("div", {}, element("span", {}, name), element("b", kind ? {class: kind} : {}, String(value)));
  const clock = (number) => number < 60 ? `${number.toFixed(1)} s` : [3600, 60, 1].map((unit) => Math.floor(number / unit))
    .map((count, at) => at ? String(count % 60).padStart(2, "0") : String(count)).join(":").replace(/^0:0?/, "");
  const room = () => Math.max(240, body.clientWidth - 34);  // inside of a section
  const plain = (number) => number === 0 || (Math.abs(number) >= 0.001 && Math.abs(number) < 1e6);
  const short = (number) => plain(number) ? String(Number(number.toPrecision(4))) : Number(number.toPrecision(2)).toExponential();

  function heading() {
    const when = facts.updated ? `${values.live ? "updated" : "as of"} ${facts.updated.slice(0, 19).replace("T", " ")} UTC` : "";
    return [element("h1", {}, facts.run, " ", element("span", {class: `badge ${STATES[facts.state] || ""}`}, facts.state)),
      element("p", {class: "soft"}, when)];
  }

  function overview() {
    const numbers = facts.figures.map(([name, value]) => figure(name, value));
    for (const metric of facts.metrics) numbers.push(figure("held-out data", metric, "good"));
    const made = element("section", {}, element("div", {class: "numbers"}, ...numbers));
    if (facts.steps) {
      const [share, wide] = [Math.min(1, (facts.step || 0) / facts.steps), room()];
      made.append(picture(wide, 8, `${Math.round(100 * share)} % of the steps`,
        drawn("rect", {class: "whole", width: wide, height: 8, rx: 4}),
        drawn("rect", {class: "done", width: wide * share, height: 8, rx: 4})));
    }
    if (facts.cause) made.append(element("p", {class: facts.state === "failed" ? "cause bad" : "cause"}, `cause: ${facts.cause}`));
    made.append(...paragraphs(facts.lines));
    return made;
  }

  // Those with room for a label between the ends.
  function powersOfTen(bottom, top) {
    const [low, high] = [Math.log10(bottom), Math.log10(top)];
    const apart = (high - low) / 10;
    const every = Math.ceil((high - low) / 6);
    const found = [];
    for (let power = Math.ceil(low + apart); power <= high - apart; power += every) found.push(10 ** power);
    return found;
  }

  function loss() {
    const points = facts.points;
    if (points.length < 2) {
      return section("Loss", ...paragraphs(["No curve yet: fewer than two reports have a loss."], "soft"));
    }
    const [first, last] = [points[0][0], points[points.length - 1][0]];
    const within = (each) => each[0] >= first && each[0] <= last;
    const heldOut = facts.held_out.filter(within);
    const losses = [...points, ...heldOut].map((point) => point[1]).filter((each) => each !== null);
    const [bottom, top] = [Math.min(...losses), Math.max(...losses)];
    const steep = bottom > 0 && top / bottom >= STEEP;  // most of such a curve would lie on the axis
    const scaled = (value) => steep ? Math.log10(value) : value;
    const marks = [bottom, ...(steep ? powersOfTen(bottom, top) : []), top];
    const longest = Math.max(...marks.map((value) => short(value).length));
    const [wide, high, left, low] = [room(), 220, 14 + 7 * longest, 20];
    const x = (step) => left + (wide - left - 10) * (step - first) / Math.max(1, last - first);
    const y = (value) => 10 + (high - low - 20) * (1 - (top > bottom ? (scaled(value) - scaled(bottom)) / (scaled(top) - scaled(bottom)) : 0.5));
    const shapes = marks.flatMap((value) => [
      drawn("line", {class: "grid", x1: left, x2: wide, y1: y(value), y2: y(value)}),
      drawn("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, short(value))]);
    shapes.push(drawn("text", {x: left, y: high - 4}, `step ${first}`));
    shapes.push(drawn("text", {x: wide - 10, y: high - 4, "text-anchor": "end"}, `step ${last}`));
    const curve = "M" + points.map(([step, value]) => `${x(step)} ${y(value)}`).join("L");
    shapes.push(drawn("path", {class: "area", d: `${curve}V${y(bottom)}H${x(first)}Z`}), drawn("path", {class: "curve", d: curve}));
    const titled = (shape, text) => { shape.append(drawn("title", {}, text)); return shape; };
    for (const [step, kind, text] of facts.marks.filter(within)) {
      shapes.push(titled(drawn("rect", {class: kind === "incident" ? "event" : kind, x: x(step) - 1.5, y: high - low - 6, width: 3, height: 6}), text));
    }
    for (const [step, value, text] of heldOut) {
      shapes.push(titled(drawn("circle", {class: "held-out", cx: x(step), cy: value === null ? 10 : y(value), r: 4}), text));
    }
    const legend = [["curve", "mean loss of the chief's batches"], ...(heldOut.length ? [["held-out", "held-out data"]] : []),
      ...["checkpoint", "formation", "incident"].filter((kind) => facts.marks.some((each) => within(each) && each[1] === kind)).map((kind) => [kind, kind])];
    return section("Loss", picture(wide, high, "loss by step", ...shapes),
      element("p", {class: "legend soft"}, ...legend.map(([kind, words]) => element("span", {class: kind}, words))),
      ...paragraphs(steep ? ["The scale is logarithmic."] : [], "soft"));
  }

  // The class and the words of each phase; a step has its work first, then its wait.
  const PHASES = {
    "starting": ["starting", "starting"], "first step": ["work", "first step"], "step": ["work", "work"],
    "saving": ["saving", "saving"], "evaluating": ["saving", "measuring"], "comparing": ["saving", "comparing"],
    "ending": ["saving", "ending"], "waits": ["wait", "waits now"], "blocks": ["blocks", "others wait for it now"],
    "broken off": ["blocks", "broken off by an error"],
  };
  const LEGEND = [["work", "work"], ["wait", "waiting for others"], ["saving", "saving, measuring"], ["starting", "starting"],
    ["blocks", "others wait for it now, or an error ended it"]];

  function piece([ago, seconds, phase, first, last, waited], x, y) {
    const [kind, words] = PHASES[phase] || ["starting", phase];
    const text = `${first === last ? `step ${first}` : `steps ${first} to ${last}`}, ${words}: ${clock(seconds)}` +
      (waited === null ? "" : `, of which waiting ${clock(waited)}`);
    const bars = [[kind, ago, seconds - (waited || 0)], ["wait", ago - seconds + (waited || 0), waited || 0]];
    return bars.filter((bar) => bar[2] > 0).map(([of, begins, lasts]) => {
      const bar = drawn("rect", {class: of, x: x(begins), y, height: 12, width: Math.max(0.3, x(begins - lasts) - x(begins))});
      bar.append(drawn("title", {}, text));
      return bar;
    });
  }

  function stepLine(found) {
    const rows = found.rows.filter((row) => row.pieces.length);
    const longest = Math.max(...rows.map((row) => row.name.length));
    const [wide, left] = [room(), 12 + 7 * longest];
    const x = (ago) => left + (wide - left - 10) * (1 - Math.min(1, Math.max(0, ago) / Math.max(1e-6, found.seconds)));
    const shapes = rows.flatMap((row, at) => [
      drawn("text", {x: left - 8, y: 16 * at + 15, "text-anchor": "end"}, row.name),
      ...row.pieces.flatMap((each) => piece(each, x, 16 * at + 5)),
    ]);
    const low = 16 * rows.length + 20;
    shapes.push(drawn("text", {x: left, y: low}, `${clock(found.seconds)} before`));
    shapes.push(drawn("text", {x: wide - 10, y: low, "text-anchor": "end"}, "last seen"));
    return picture(wide, low + 6, `steps of ${rows.length} tasks`, ...shapes);
  }

  function stepSection() {
    if (steps === null) return values.live ? section("Steps of all tasks", ...paragraphs(["reading the newest steps"], "soft")) : null;
    const lines = paragraphs(steps.lines, "soft");
    if (!steps.windows[shownSteps].rows.some((row) => row.pieces.length)) return section("Steps of all tasks", ...lines);
    const choices = [["newest", "newest steps"], ["all", "all that is recorded"]].map(([name, title]) => {
      const choice = element("button", {"data-key": `steps ${name}`, "aria-pressed": String(shownSteps === name)}, title);
      choice.addEventListener("click", () => { shownSteps = name; draw(); });
      return choice;
    });
    const legend = element("p", {class: "legend soft"}, ...LEGEND.map(([kind, words]) => element("span", {class: kind}, words)));
    return section("Steps of all tasks", element("div", {class: "choices"}, ...choices), stepLine(steps.windows[shownSteps]), legend, ...lines);
  }

  function incidents() {
    if (!facts.incidents.length) return null;
    const until = Math.max(1, facts.elapsed_s || 0, ...facts.incidents.map((each) => each.at_s || 0));
    const wide = room();
    const x = (seconds) => 10 + (wide - 20) * Math.min(1, (seconds || 0) / until);
    const shapes = [drawn("rect", {class: "whole", x: 10, width: wide - 20, y: 18, height: 4, rx: 2})];
    for (const each of facts.incidents) {
      const to = each.open ? until : (each.at_s || 0) + (each.lasted_s || 0);
      shapes.push(drawn("rect", {class: "standing", x: x(each.at_s), y: 10, width: Math.max(0, x(to) - x(each.at_s)), height: 20, rx: 3}));
      shapes.push(drawn("circle", {class: "event", cx: x(each.at_s), cy: 20, r: 5}));
    }
    shapes.push(drawn("text", {x: 10, y: 46}, "start"));
    shapes.push(drawn("text", {x: wide - 10, y: 46, "text-anchor": "end"}, clock(until)));
    const listed = facts.incidents.map((each) => {
      const when = element("span", {class: "soft"}, each.at_s === null ? "" : `${clock(each.at_s)} `);
      const head = element("summary", each.open ? {class: "bad"} : {}, when, each.text);
      const lines = each.log.length ? element("pre", {}, each.log.join("\n")) : null;
      return element("details", {"data-key": `incident ${each.number}`}, head, ...paragraphs(each.details, "soft"), lines);
    });
    return section("Incidents", picture(wide, 50, "incidents by time", ...shapes), ...listed);
  }

  const number = (key, digits) => (row) => row[key] === null ? "" : row[key].toFixed(digits || 0);
  const COLUMNS = [
    {title: "task", key: "name", text: (row) => row.name},
    {title: "host", key: "host", text: (row) => row.host},
    {title: "state", key: "state", text: (row) => row.state + (row.slow ? " (slow)" : "") + (row.doing ? `: ${row.doing}` : "")},
    {title: "step", key: "step", text: number("step"), number: true},
    {title: "work, ms", key: "work_ms", text: number("work_ms", 1), number: true},
    {title: "waits, ms", key: "wait_ms", text: number("wait_ms", 1), number: true},
    {title: "work and waiting", key: null, text: (row) => row.work_ms === null ? "" : "drawn", kind: "parts"},
    {title: "restarts", key: "restarts", text: (row) => row.restarts ? String(row.restarts) : "", number: true},
    ...facts.numbers.map(([title, key, digits]) => ({title, key, text: number(key, digits), number: true})),
    {title: "cause", key: "cause", text: (row) => row.cause || "", kind: "cause"},
  ];

  function ordered() {
    const {by, down} = sorted;
    if (by === null) return facts.tasks;
    const compare = new Intl.Collator(undefined, {numeric: true}).compare;
    const missing = (row) => row[by] === null || row[by] === "";
    return [...facts.tasks].sort((a, b) => missing(a) - missing(b) ||
      (down ? -1 : 1) * (typeof a[by] === "number" ? a[by] - b[by] : compare(a[by], b[by])));
  }

  function parts(row, longest) {
    const [work, wait] = [row.work_ms || 0, row.wait_ms || 0];
    const made = picture(140, 12, `${short(work)} ms of work, ${short(wait)} ms of waiting`,
      drawn("rect", {class: "work", y: 1, width: 140 * work / longest, height: 10}),
      drawn("rect", {class: "wait", y: 1, x: 140 * work / longest, width: 140 * wait / longest, height: 10}));
    made.setAttribute("preserveAspectRatio", "none");
    return made;
  }

  function tasks() {
    const shown = COLUMNS.filter((column) => facts.tasks.some((row) => column.text(row) !== ""));
    const longest = Math.max(1e-9, ...facts.tasks.map((row) => (row.work_ms || 0) + (row.wait_ms || 0)));
    const heads = shown.map((column) => {
      const mark = sorted.by === column.key && column.key ? (sorted.down ? " ▾" : " ▴") : "";
      const head = element(column.key ? "button" : "span", column.key ? {"data-key": `by ${column.key}`} : {}, column.title + mark);
      if (column.key) head.addEventListener("click", () => {
        sorted = {by: column.key, down: sorted.by === column.key && !sorted.down};
        draw();
      });
      return element("th", column.number ? {class: "number"} : column.kind ? {class: column.kind} : {}, head);
    });
    const rows = ordered().map((row) => element("tr", {}, ...shown.map((column) => {
      if (column.key === null) return element("td", {class: column.kind}, row.work_ms === null ? "" : parts(row, longest));
      const kind = column.number ? "number" : column.kind || (column.key === "state" ? (row.slow ? "warn" : STATES[row.state] || "") : "");
      return element("td", kind ? {class: kind} : {}, column.text(row));
    })));
    return section(`Tasks (${rows.length.toLocaleString("en")})`, element("div", {class: "rows", tabindex: "0", "data-key": "rows", "aria-label": "tasks"},
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows))));
  }

  // The logs have an element of their own that stays, so that what is typed and scrolled there stays.
  const filter = element("input", {type: "search", placeholder: "lines with this text", "aria-label": "lines with this text"});
  const printed = element("pre", {id: "lines", tabindex: "0", "aria-label": "lines of logs"});
  const missing = element("div", {});
  const logSection = section("Logs, last lines", filter, missing, printed);
  filter.addEventListener("input", () => drawLogs());

  function drawLogs() {
    const follows = printed.scrollTop + printed.clientHeight >= printed.scrollHeight - 4;
    const lines = logs === null ? ["reading the logs"] : logs.lines.filter((line) => line.includes(filter.value));
    const lacking = logs === null ? [] : logs.missing;
    printed.textContent = lines.join("\n") || (lacking.length ? "" : filter.value ? "no line has this text" : "nothing printed yet");
    missing.replaceChildren(...paragraphs(lacking, "warn"));
    if (follows) printed.scrollTop = printed.scrollHeight;
  }

  const body = element("div", {});
  page.replaceChildren(body, logSection);

  // Drawn as a whole: what the reader has opened, scrolled and reached with the keyboard stays.
  function draw() {
    const open = new Set([...body.querySelectorAll("details[open]")].map((each) => each.dataset.key));
    const rows = body.querySelector(".rows");
    const scrolled = rows ? [rows.scrollTop, rows.scrollLeft] : [0, 0];
    const active = body.contains(document.activeElement) ? document.activeElement.closest("[data-key]") : null;
    const copies = facts.copies.length ? section("Checkpoints", ...paragraphs(facts.copies)) : null;
    body.replaceChildren(...[overview(), loss(), stepSection(), incidents(), tasks(), copies].filter((each) => each !== null));
    for (const each of body.querySelectorAll("details")) each.open = open.has(each.dataset.key);
    [body.querySelector(".rows").scrollTop, body.querySelector(".rows").scrollLeft] = scrolled;
    const again = active && [...body.querySelectorAll("[data-key]")].find((each) => each.dataset.key === active.dataset.key);
    if (again) (again.querySelector("summary") || again).focus({preventScroll: true});
    document.title = `${facts.run} ${facts.state}`;
    document.querySelector("header").replaceChildren(...heading());
  }

  function report(text) {
    problem.textContent = text || "";
    problem.hidden = !text;
  }

  async function follow(path, take, failed, last) {
    let now = last;
    try {
      const answer = await fetch(path, {cache: "no-store"});
      if (!answer.ok) throw new Error(`${answer.status}`);
      now = await answer.text();
      if (now !== last) take(JSON.parse(now));
    } catch (error) {
      failed();
      now = null;
    }
    setTimeout(() => follow(path, take, failed, now), EVERY_MS);
  }

  draw();
  drawLogs();
  let wide = room();
  addEventListener("resize", () => { if (room() !== wide) { wide = room(); draw(); } });
  printed.scrollTop = printed.scrollHeight;
  if (values.live) {
    follow("status.json", (answer) => {
      report(answer.problem);
      if (answer.facts) { facts = answer.facts; draw(); }
    }, () => report("The server of this page has ended; the page shows the last values. `launch view` starts a new server."), null);
    follow("steps.json", (answer) => { if (answer) { steps = answer; draw(); } }, () => {}, null);
    follow("logs.json", (answer) => { logs = answer; drawLogs(); }, () => {}, null);
  }
}());
