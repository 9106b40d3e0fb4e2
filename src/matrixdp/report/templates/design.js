"use strict";
const page = crypto.randomUUID(), at = (id) => document.getElementById(id), letters = document.body.dataset.letters.split(" ");
let text = null, saved = null, seen = "", shown = null, past = [], future = [], timer = 0;
const make = (tag, attributes = {}, ...inside) => {
  const own = document.createElementNS(["svg", "rect"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
  for (const [name, value] of Object.entries(attributes)) typeof value === "function" ? own.addEventListener(name, value) : own.setAttribute(name, value);
  own.append(...inside);
  return own;
};
const percent = (share) => (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + "%";
const counted = (number) => number.toLocaleString("en");
const say = (words) => { at("said").textContent = words; };

async function post(where, body) {
  const answer = await fetch(where, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page, ...body }) });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

// Every change goes to the program, one after another; it answers with the text and what is known of it.
let queue = Promise.resolve(), waiting = 0, last = ["", 0];
const remember = (key) => {
  if (key === "" || key !== last[0] || Date.now() - last[1] > 1500) past.push(text);
  last = [key, Date.now()];
  future = [];
};
const inTurn = (work) => {
  clearTimeout(timer);
  waiting += 1;
  return (queue = queue.then(work).finally(() => { waiting -= 1; if (!waiting) timer = setTimeout(() => ask({}), shown && shown.stage ? 500 : 4000); }));
};
async function answered(body) {
  let found = null;
  try { found = await post("design", { text, ...body }); } catch (error) {
    say(error instanceof TypeError ? "The program does not answer. Is it running? Your text is kept here." : error.message);
    return null;
  }
  if (shown === null) { seen = found.disk; saved = found.disk ? found.text : null; text = found.text; }
  if (found.text !== text) { remember(body.change ? body.change.path.join("/") : ""); text = found.text; }
  shown = found;
  show();
  return found;
}
const ask = (body) => inTurn(() => answered(body));
const change = async (path, rest, where = "refused") => {
  const found = await ask({ change: { path, ...rest } });
  if (found) at(where).textContent = found.refused ? found.refused.says : "";
  return found && !found.refused;
};
const put = (other) => inTurn(() => { if (other !== text) { remember("text"); text = other; } return answered({}); });
const step = (from, to) => inTurn(() => { if (from.length) { to.push(text); text = from.pop(); last = ["", 0]; at("text").value = text; } return answered({}); });

function show() {
  const focused = document.activeElement && document.activeElement.id;
  if (focused !== "text") at("text").value = text;
  at("undo").disabled = !past.length;
  at("redo").disabled = !future.length;
  at("save").disabled = text === saved;
  at("problem").textContent = shown.problem && shown.problem.code !== "missing-key" || shown.problem && !shown.attributes.some((own) => own.problem) ? shown.problem.says : "";
  attributes();
  grid();
  entries();
  budget();
  quality();
  at("warnings").replaceChildren(...(shown.warnings || []).map((words) => make("li", {}, words)));
  at("commands").replaceChildren(...shown.commands.map((words) => make("code", {}, words)));
  if (shown.disk !== seen) disk(shown.disk);
  else at("disk").replaceChildren();
  if (focused && document.activeElement.id !== focused && at(focused)) at(focused).focus();
}

function attributes() {
  const known = shown.attributes, list = at("attributes"), names = JSON.stringify(known.map((own) => own.name));
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(...known.map((own, place) => {
      const id = "attribute-" + place, input = make("input", { id, "aria-describedby": id + "-wrong", autocomplete: "off", spellcheck: "false" });
      input.addEventListener("input", () => { clearTimeout(input.wait); input.wait = setTimeout(() => input.dispatchEvent(new Event("change")), 600); });
      input.addEventListener("change", () => {
        clearTimeout(input.wait);
        if (input.value !== shown.attributes[place].written) change(["domain", own.name], { written: input.value || "TODO" }, id + "-wrong");
      });
      const gone = make("button", { type: "button", id: id + "-gone", "aria-label": "Remove attribute " + own.name, click: () => change(["domain", own.name], {}) }, "\u00d7");
      return make("li", {}, make("label", { for: id }, own.name), input, make("span", { class: "size" }), gone, make("p", { class: "wrong", id: id + "-wrong", role: "alert" }));
    }));
  }
  known.forEach((own, place) => {
    const [, input, size, gone, wrong] = list.children[place].children;
    if (document.activeElement !== input) input.value = own.written === null ? "" : own.written;
    input.disabled = gone.disabled = own.written === null;
    input.setAttribute("aria-invalid", String(Boolean(own.problem)));
    size.textContent = own.amount ? "an amount" : own.size === null ? "" : counted(own.size) + (own.size === 1 ? " value" : " values");
    wrong.textContent = own.problem;
  });
}

// The entry that a cell stands for, as the specification has it.
const entry = (shape, row, column) => {
  const same = row === column;
  if (shape === "counts") return { marginals: [same ? [row] : [column, row]] };
  if (shape === "mean") return same ? { mean: row } : { mean: row, by: [column] };
  return { product: same ? { [row]: "prefix" } : { [column]: "identity", [row]: "prefix" } };
};
function grid() {
  const known = shown.attributes, shape = at("shape").value, found = new Map(shown.entries.map((own, place) => [JSON.stringify(own.asked), place]));
  const about = new Map();
  shown.entries.forEach((own, place) => own.about.forEach((names) => about.has([...names].sort().join("\n")) || about.set([...names].sort().join("\n"), place)));
  const head = make("thead", {}, make("tr", {}, make("td", {}), ...known.map((own) => make("th", { scope: "col" }, own.name))));
  const rows = known.map((row, y) => make("tr", {}, make("th", { scope: "row" }, row.name), ...known.map((column, x) => {
    const means = shape === "mean";
    if (shape === "counts" && x > y || row.amount && !means || column.amount && x !== y) return make("td");
    const asked = entry(shape, row.name, column.name), own = JSON.stringify(asked), place = found.get(own);
    const cells = x === y ? (means ? 1 : row.size) : column.size && (means ? column.size : row.size * column.size);
    const part = shape === "counts" && place === undefined ? about.get([...new Set([row.name, column.name])].sort().join("\n")) : undefined;
    const what = (x === y ? row.name : `${row.name} by ${column.name}`) + (cells ? `, ${counted(cells)} figures` : "");
    const button = make("button", { type: "button", id: `cell-${y}-${x}`, "aria-pressed": String(place !== undefined), "aria-label": `${what}${part === undefined ? "" : `, in entry ${part + 1}`}` }, cells ? counted(cells) : "?");
    if (part !== undefined) button.className = "in";
    button.addEventListener("click", () => (place === undefined ? change(["workload", shown.entries.length], { value: asked, check: true }) : change(["workload", place], {})));
    return make("td", {}, button);
  })));
  at("grid").replaceChildren(head, make("tbody", {}, ...rows));
}

function entries() {
  at("entries").replaceChildren(...shown.entries.map((own, place) => {
    const asked = own.asked || {}, path = ["workload", place], given = asked.budget_share;
    const weight = make("input", { type: "number", id: "weight-" + place, min: "0", step: "any", value: asked.weight || 1, "aria-label": `weight of entry ${place + 1}` });
    weight.disabled = given !== undefined;
    weight.addEventListener("change", () => change([...path, "weight"], { value: Number(weight.value) }));
    const part = make("input", { type: "number", id: "share-" + place, min: "0", max: "100", step: "any", value: given === undefined ? "" : 100 * given, "aria-label": `share of the cost for entry ${place + 1}, in per cent; empty to leave it to the weight` });
    part.addEventListener("change", async () => {
      if (part.value !== "" && asked.weight !== undefined) await change([...path, "weight"], {});
      await change([...path, "budget_share"], part.value === "" ? {} : { value: Number(part.value) / 100 });
    });
    const gone = make("button", { type: "button", id: "entry-" + place, "aria-label": `Remove entry ${place + 1}`, click: () => change(["workload", place], {}) }, "\u00d7");
    const share = shown.prices && shown.prices[place];
    return make("li", { class: "entry" }, make("code", {}, own.written.replace(/ {2,}#/g, "  #")), make("div", {}, make("label", {}, "weight", weight), make("label", {}, "share, %", part)), make("span", { class: "size" }, share === undefined ? "" : percent(share) + " of cost"), gone);
  }));
  if (!shown.entries.length) at("entries").append(make("li", {}, "Nothing yet: press a cell of the grid."));
}

const kinds = ["epsilon", "rho", "mu"], kind = () => kinds.find((name) => name in shown.privacy);
function budget() {
  const own = kind(), value = Number(shown.privacy[own]);
  at("kind").textContent = own || "Budget";
  for (const id of ["amount", "slider"]) {
    at(id).disabled = !own;
    if (own && document.activeElement !== at(id)) at(id).value = id === "amount" ? value : Math.round(100 * Math.log10(value));
  }
  at("slider").setAttribute("aria-valuetext", own ? `${own} ${value}` : "");
  at("delta").textContent = "delta" in shown.privacy ? `delta ${shown.privacy.delta}` : "";
  const found = shown.budget;
  at("guess").textContent = found ? `A reader who guesses whether a person is in the data is right at most ${(100 * found.guess).toFixed(1)}% of the time.` : "";
  const ledger = shown.ledger;
  at("ledger").textContent = ledger ? `The ledger of ${ledger.dataset} has ${ledger.left} left: enough for ${counted(ledger.releases[0])} such releases.` : "";
}
const spend = (value) => kind() && value > 0 && change(["privacy", kind()], { value }, "failed");

function quality() {
  const known = shown.tables || [], cells = known.reduce((sum, own) => sum + own.figures, 0);
  at("failed").textContent = shown.failed;
  at("state").textContent = !shown.tables ? "Figures come back once the design is one." : shown.stage ? `Estimated; being computed: ${shown.stage} ...` : shown.certified ? `Computed: ${shown.judged}. ${counted(cells)} figures.` : "Estimated.";
  at("bars").classList.toggle("old", !shown.certified);
  at("sheet").hidden = !shown.certified;
  at("sheet").href = "sheet?page=" + page;
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Table"), make("th", { scope: "col", class: "n" }, "Figures"), make("th", { scope: "col" }, "Reliable (A, B, C) and not (F)")));
  const rows = known.map((own) => {
    const cell = make("td");
    if (own.letters === null) cell.append(make("small", {}, shown.stage ? "being computed" : "not known"));
    else if (own.refusal) cell.append(make("small", {}, own.refusal));
    else if (!Object.keys(own.letters).length) cell.append(make("small", {}, "no letters"));
    else {
      const told = letters.filter((name) => own.letters[name] > 0).map((name) => `${name} ${percent(own.letters[name])}`).join(" ");
      const bar = make("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": told });
      let x = 0;
      for (const name of letters) { bar.append(make("rect", { class: name, x, y: 0, width: 100 * own.letters[name], height: 8 })); x += 100 * own.letters[name]; }
      cell.append(bar, make("small", {}, told));
    }
    return make("tr", {}, make("th", { scope: "row" }, own.table), make("td", { class: "n" }, counted(own.figures)), cell);
  });
  if (shown.more) rows.push(make("tr", {}, make("th", { scope: "row" }, `and ${counted(shown.more)} more`), make("td"), make("td")));
  at("bars").replaceChildren(head, make("tbody", {}, ...rows));
}

// The file: what another program wrote to it is never replaced unseen.
function disk(digest) {
  if (at("disk").dataset.digest === digest && at("disk").children.length) return;
  at("disk").dataset.digest = digest;
  const theirs = make("button", { type: "button", id: "theirs", click: () => inTurn(async () => {
    const found = await post("design", { text: null });
    remember(""); text = saved = found.text; seen = found.disk;
    return answered({});
  }) }, "Take the file (undo brings this text back)");
  const mine = make("button", { type: "button", id: "mine", click: () => { seen = digest; at("disk").replaceChildren(); save(); } }, "Keep this text, and replace the file");
  at("disk").replaceChildren(make("p", {}, "The file was changed outside this page. Nothing is lost yet."), theirs, mine);
}
async function save() {
  try {
    const sent = text, found = await post("save", { text: sent, seen });
    if (!found.saved) return disk(found.disk);
    saved = sent; seen = found.disk;
    at("disk").replaceChildren();
    at("save").disabled = text === saved;
    say("Saved.");
  } catch (error) { say("Not saved: " + error.message); }
}

at("save").addEventListener("click", save);
at("undo").addEventListener("click", () => step(past, future));
at("redo").addEventListener("click", () => step(future, past));
at("shape").addEventListener("change", grid);
at("text").addEventListener("input", () => { clearTimeout(at("text").wait); at("text").wait = setTimeout(() => put(at("text").value), 400); });
at("amount").addEventListener("change", () => spend(Number(at("amount").value)));
at("slider").addEventListener("input", () => {
  const value = Number((10 ** (at("slider").value / 100)).toPrecision(2));
  at("amount").value = value;
  clearTimeout(at("slider").wait);
  at("slider").wait = setTimeout(() => spend(value), 60);
});
at("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = at("name").value.trim();
  if (name && await change(["domain", name], { written: at("values").value || "TODO" }, "added")) { at("name").value = at("values").value = ""; at("name").focus(); }
});
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey)) return;
  if (event.key === "s") { event.preventDefault(); save(); }
  if (event.key === "z" && !event.target.matches("input, textarea")) { event.preventDefault(); event.shiftKey ? step(future, past) : step(past, future); }
});
addEventListener("beforeunload", (event) => { if (saved !== null && text !== saved) event.preventDefault(); });
ask({});
