"use strict";
const page = crypto.randomUUID(), at = (id) => document.getElementById(id), letters = document.body.dataset.letters.split(" ");
let text = null, saved = null, seen = "", shown = null, past = [], future = [], timer = 0, kept = null, offer = null;
const make = (tag, attributes = {}, ...inside) => {
  const own = document.createElementNS(["svg", "rect"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
  for (const [name, value] of Object.entries(attributes)) typeof value === "function" ? own.addEventListener(name, value) : own.setAttribute(name, value);
  own.append(...inside);
  return own;
};
const percent = (share) => share > 0 && share < 0.0005 ? "under 0.1%" : (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + "%";
const counted = (number) => number.toLocaleString("en");
const odds = (share) => (Math.ceil(1000 * share - 1e-9) / 10).toFixed(1) + "%";
const say = (words) => { at("said").textContent = words; };

const silent = "The program does not answer. Is it running? Your text is kept here. If a release was under way, the next one for this folder says what it left.";
async function post(where, body) {
  const answer = await fetch(where, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page, ...body }) }).catch(() => { throw new Error(silent); });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

// Every change goes to the program, one after another; it answers with the text and what is known of it.
let queue = Promise.resolve(), waiting = 0, last = ["", 0];
const state = (both) => (both ? { text, kept } : { text });
const remember = (key, both = false) => {
  if (key === "" || key !== last[0] || Date.now() - last[1] > 1500) past.push(state(both));
  last = [key, Date.now()];
  future = [];
  say("");
};
// who does not answer may be gone, and another program at its address: it is asked again by a press alone
let failures = 0;
const inTurn = (work) => {
  clearTimeout(timer);
  waiting += 1;
  return (queue = queue.then(work).then((found) => { failures = 0; return found; }, (error) => { failures += 1; say(error.message); return null; }).finally(() => { waiting -= 1; if (!waiting && failures < 5) timer = setTimeout(() => ask({}), shown && (shown.stage || going()) ? 500 : 4000); }));
};
async function answered(body) {
  const found = await post("design", { text, ...body });
  if (shown === null) { seen = found.disk; saved = found.disk ? found.text : null; text = found.text; }
  if (found.text !== text) { remember(body.changes ? body.changes.at(-1).path.join("/") : ""); text = found.text; }
  shown = found;
  show();
  return found;
}
const ask = (body) => inTurn(() => answered(body));
const changes = async (all, where = "refused") => {
  const found = await ask({ changes: all });
  if (found) at(where).textContent = found.refused ? found.refused.says : "";
  return found && !found.refused;
};
const change = (path, rest, where) => changes([{ path, ...rest }], where);
const put = (other) => inTurn(() => { if (other !== text) { remember("text"); text = other; } return answered({}); });
const step = (from, to) => inTurn(() => {
  if (from.length) {
    const own = from.pop();
    to.push(state("kept" in own));
    ({ text, kept } = { kept, ...own });
    last = ["", 0];
    at("text").value = text;
    say("");
  }
  return answered({ kept: kept && kept.text });
});

function show() {
  const active = document.activeElement, focused = active && active.id;
  if (focused !== "text") at("text").value = text;
  at("undo").disabled = !past.length;
  at("redo").disabled = !future.length;
  ready();
  at("problem").textContent = shown.problem && shown.problem.code !== "missing-key" || shown.problem && !shown.attributes.some((own) => own.problem) ? shown.problem.says : "";
  attributes();
  grid();
  // what is being written there is not taken away
  if (!(at("entries").contains(active) && active.matches("input") && active.value !== active.defaultValue)) entries();
  budget();
  comparison();
  quality();
  at("warnings").replaceChildren(...(shown.warnings || []).map((words) => make("li", {}, words)));
  released();
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
      const id = "attribute-" + place, input = make("input", { id, "aria-describedby": `${id}-wrong ${id}-note`, autocomplete: "off", spellcheck: "false" });
      input.addEventListener("input", () => { clearTimeout(input.wait); input.wait = setTimeout(() => input.dispatchEvent(new Event("change")), 600); });
      input.addEventListener("change", () => {
        clearTimeout(input.wait);
        if (input.value !== shown.attributes[place].written) change(["domain", own.name], { written: input.value || "TODO" }, id + "-wrong");
      });
      const gone = make("button", { type: "button", id: id + "-gone", "aria-label": "Remove attribute " + own.name, click: async () => { if (await change(["domain", own.name], {})) say(`Removed ${own.name}, and the tables of it. Undo brings them back.`); } }, "\u00d7");
      return make("li", {}, make("label", { for: id }, own.name), input, make("span", { class: "size" }), gone, make("p", { class: "wrong", id: id + "-wrong", role: "alert" }), make("p", { class: "hint note", id: id + "-note" }));
    }));
  }
  known.forEach((own, place) => {
    const [, input, size, gone, wrong, note] = list.children[place].children;
    if (document.activeElement !== input) input.value = own.written === null ? "" : own.written;
    input.disabled = gone.disabled = own.written === null;
    input.setAttribute("aria-invalid", String(Boolean(own.problem)));
    size.textContent = own.amount ? "an amount" : own.size === null ? "" : counted(own.size) + (own.size === 1 ? " value" : " values");
    wrong.textContent = own.problem;
    note.textContent = own.note;
  });
}

// The entry that a cell stands for, as the specification has it.
const entry = (shape, row, column) => {
  const same = row === column;
  if (shape === "counts") return { marginals: [same ? [row] : [column, row]] };
  if (shape === "mean") return same ? { mean: row } : { mean: row, by: [column] };
  return { product: same ? { [row]: "prefix" } : { [column]: "identity", [row]: "prefix" } };
};
// What takes a table out of the entry that lists it among others: it is not asked for twice.
function apart(place, { marginals: [names] = [] }) {
  const { marginals, ...rest } = place === undefined ? {} : shown.entries[place].asked;
  const part = Array.isArray(marginals) ? marginals.findIndex((own) => Array.isArray(own) && [...own].sort().join("\n") === [...names].sort().join("\n")) : -1;
  return part >= 0 && marginals.length > 1 && !Object.keys(rest).length ? [{ path: ["workload", place, "marginals", part] }] : [];
}
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
    button.addEventListener("click", () => (place === undefined ? changes([...apart(part, asked), { path: ["workload", shown.entries.length], value: asked, check: true }]) : change(["workload", place], {})));
    return make("td", {}, button);
  })));
  at("grid").replaceChildren(head, make("tbody", {}, ...rows));
}

const number = (id, value, label, commit, more = {}) => {
  const input = make("input", { type: "number", id, min: "0", step: "any", value, "aria-label": label, ...more });
  input.addEventListener("change", () => { input.defaultValue = input.value; commit(input.value); });
  return input;
};
const hundred = (share) => Number((100 * share).toPrecision(12)), hundredth = (value) => Number((Number(value) / 100).toPrecision(12));

const least = () => shown.budget.words.replace(/, \w+ neighbours.*/, "");
// A lock: figures of at least so many records of an entry have at most a coefficient of variation.
function lock(own, place) {
  const targets = shown.targets, one = place + 1, set = own.names.filter((name) => (targets[name] || {}).cv !== undefined);
  const held = set.length && set.length === own.names.length ? targets[set[0]] : null, other = own.names.find((name) => name in targets && !set.includes(name));
  const write = (cv, records) => {
    if (cv === "") return set.length && changes(Object.keys(targets).every((name) => set.includes(name)) ? [{ path: ["targets"] }] : set.map((name) => ({ path: ["targets", name] })));
    const value = { cv: hundredth(cv), for: { records_above: Number(records || 200) } };
    return changes(own.names.flatMap((name) => (set.includes(name)
      ? [{ path: ["targets", name, "cv"], value: value.cv, check: true }, { path: ["targets", name, "for", "records_above"], value: value.for.records_above }]
      : [{ path: ["targets", name], value, check: true }])));
  };
  const cv = number("cv-" + place, held ? hundred(held.cv) : "", `largest coefficient of variation of entry ${one}, in per cent; empty for none`, (value) => write(value, records.value), { "aria-describedby": "locked-" + place });
  const records = number("records-" + place, held ? held.for.records_above : "", `of figures of at least so many records, entry ${one}`, (value) => cv.value !== "" && write(cv.value, value), { placeholder: "200" });
  cv.disabled = records.disabled = !own.names.length;
  const told = !own.names.length ? (shown.cells ? "to bound its CV, give this entry a name in the text" : "")
    : held ? (shown.unmet ? "not met: see above" : shown.certified ? `met with ${least()}; figures of fewer records are less reliable` : shown.stage ? "being computed" : "")
    : set.length ? `${counted(set.length)} of its ${counted(own.names.length)} tables: the text says which` : other ? "it has a target of another form in the text" : "";
  return [make("label", {}, "CV at most, %", cv), make("label", {}, "from", records, "records"), make("span", { id: "locked-" + place, class: shown.unmet && held ? "wrong" : "hint" }, told)];
}
function entries() {
  at("entries").replaceChildren(...shown.entries.map((own, place) => {
    const asked = own.asked || {}, path = ["workload", place], given = asked.budget_share;
    const weight = number("weight-" + place, asked.weight || 1, `weight of entry ${place + 1}`, (value) => change([...path, "weight"], { value: Number(value) }));
    weight.disabled = given !== undefined;
    const part = number("share-" + place, given === undefined ? "" : hundred(given), `share of the cost for entry ${place + 1}, in per cent; empty to leave it to the weight`, (value) => changes([
      ...(value !== "" && asked.weight !== undefined ? [{ path: [...path, "weight"] }] : []),
      { path: [...path, "budget_share"], ...(value === "" ? {} : { value: hundredth(value) }) },
    ]));
    const gone = make("button", { type: "button", id: "entry-" + place, "aria-label": `Remove entry ${place + 1}`, click: () => change(["workload", place], {}) }, "\u00d7");
    const share = shown.prices && shown.prices[place];
    const twice = own.about.length ? shown.entries.findIndex((other, number) => number !== place && "marginals" in other.asked && own.about.every((names) => other.about.some((one) => one.join("\n") === names.join("\n")))) : -1;
    return make("li", { class: "entry" }, make("code", {}, own.written.replace(/ {2,}#/g, "  #")), make("span", { class: "size" }, share === undefined ? "" : percent(share) + " of cost"), gone, make("div", { class: "bounds" }, make("label", {}, "weight", weight), make("label", {}, "share, %", part), ...lock(own, place), make("span", { class: "hint" }, twice >= 0 && "marginals" in asked ? `entry ${twice + 1} has this too: it is published twice` : "")));
  }));
  at("unmet").textContent = shown.unmet ? shown.failed : "";
  if (!shown.entries.length) at("entries").append(make("li", {}, "Nothing yet: press a cell of the grid."));
}

const kinds = ["epsilon", "rho", "mu"], kind = () => kinds.find((name) => name in shown.privacy);
function budget() {
  const own = kind(), value = Number(shown.privacy[own]);
  at("kind").textContent = !own ? "Budget" : Object.keys(shown.targets).length ? own + ", at most" : own;
  for (const id of ["amount", "slider"]) {
    at(id).disabled = !own;
    if (own && document.activeElement !== at(id)) at(id).value = id === "amount" ? value : Math.round(100 * Math.log10(value));
  }
  at("slider").setAttribute("aria-valuetext", own ? `${own} ${value}` : "");
  at("delta").textContent = "delta" in shown.privacy ? `delta ${shown.privacy.delta}` : "";
  const found = shown.budget;
  at("guess").textContent = found ? `A reader who guesses whether a person is in the data is right at most ${odds(found.guess)} of the time; a coin, 50%.` : "";
  at("least").textContent = found && Object.keys(shown.targets).length ? `A release spends ${least()}: the least that meets the targets. Tables without a target may be unreliable: give them one too.` : "";
  const ledger = shown.ledger;
  at("ledger").textContent = ledger ? `The ledger of ${ledger.dataset} has ${ledger.left} left: enough for ${counted(ledger.releases[0])} such releases.` : "";
}
const spend = (value) => kind() && value > 0 && change(["privacy", kind()], { value }, "failed");

// Two designs side by side: the one that is kept has its text and the figures that were computed for it.
function bar(own, which) {
  const head = which && which + ": ", words = (told) => [make("small", {}, head + told)];
  if (own.letters === null) return words(shown.stage ? "being computed" : "not known");
  if (own.refusal) return words(own.refusal);
  if (!Object.keys(own.letters).length) return words("no letters");
  const told = letters.filter((name) => own.letters[name] > 0).map((name) => `${name} ${percent(own.letters[name])}`).join(" ");
  const made = make("svg", { class: which === "kept" ? "bar then" : "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": head + told });
  let x = 0;
  for (const name of letters) { made.append(make("rect", { class: name, x, y: 0, width: 100 * own.letters[name], height: 8 })); x += 100 * own.letters[name]; }
  return [made, ...words(told + (own.variation === null ? "" : `, median CV ${percent(own.variation)}`))];
}
function difference(now, before) {
  const good = (own) => (own.letters && Object.keys(own.letters).length ? letters.slice(0, -1).reduce((sum, name) => sum + own.letters[name], 0) : null);
  const told = [], points = good(now) === null || good(before) === null ? null : Math.round(100 * (good(now) - good(before)));
  if (points !== null) told.push(points ? `${Math.abs(points)} ${Math.abs(points) === 1 ? "point" : "points"} ${points > 0 ? "more" : "fewer"} reliable` : "as many reliable");
  if (now.letters && now.variation !== null && before.variation !== null) {
    const [one, other] = [now, before].map((own) => percent(own.variation));
    told.push(one === other ? "the same median CV" : `median CV ${one} instead of ${other}, ${now.variation < before.variation ? "better" : "worse"}`);
  }
  return told.join("; ");
}
function comparison() {
  const line = (name, own) => [make("dt", {}, name), make("dd", {}, own ? `${own.words}; a reader guesses right at most ${odds(own.guess)}` : "not known yet")];
  at("keep").disabled = !shown.certified;
  at("swap").hidden = at("drop").hidden = !kept;
  at("both").replaceChildren(...(kept ? [...line("kept", kept.budget), ...line("now", shown.budget)] : []));
}
const current = () => ({ text, tables: shown.tables, budget: shown.budget });
const keep = (own) => inTurn(() => { kept = own(); return answered({ kept: kept && kept.text }); });
at("keep").addEventListener("click", () => keep(current));
at("drop").addEventListener("click", () => { at("keep").focus(); return keep(() => null); });
at("swap").addEventListener("click", () => inTurn(() => {
  const own = kept;
  if (!own) return null;
  remember("", true);
  if (shown.certified) kept = current();
  text = at("text").value = own.text;
  return answered({ kept: kept.text });
}));

function quality() {
  const known = shown.tables || [], cells = known.reduce((sum, own) => sum + own.figures, 0);
  at("failed").textContent = shown.unmet ? "" : shown.failed;
  at("state").textContent = !shown.tables ? "No figures until the mistake is mended that stands above." : shown.stage ? `${known.some((own) => own.letters) ? "Estimated; being" : "Being"} computed: ${shown.stage} ...` : shown.certified ? `Computed: ${shown.judged}. ${counted(cells)} figures.` : shown.unmet ? "Not computed: a target cannot be met." : shown.failed ? "Not computed." : "Estimated.";
  at("bars").classList.toggle("old", !shown.certified);
  at("sheet").hidden = !shown.certified;
  at("sheet").href = "sheet?page=" + page;
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Table"), make("th", { scope: "col", class: "n" }, "Figures"), make("th", { scope: "col" }, "Reliable (A, B, C) and not (F)")));
  const then = new Map(kept ? kept.tables.map((own) => [own.table, own]) : []);
  const rows = known.map((own) => {
    const cell = make("td"), before = then.get(own.table);
    cell.append(...bar(own, kept ? "now" : ""));
    if (before) cell.append(...bar(before, "kept"), make("strong", {}, difference(own, before)));
    else if (kept) cell.append(make("strong", {}, "not in the kept design"));
    then.delete(own.table);
    return make("tr", {}, make("th", { scope: "row" }, own.table), make("td", { class: "n" }, own.figures ? counted(own.figures) : ""), cell);
  });
  for (const own of then.values()) rows.push(make("tr", {}, make("th", { scope: "row" }, own.table), make("td", { class: "n" }, counted(own.figures)), make("td", {}, ...bar(own, "kept"), make("strong", {}, "in the kept design alone"))));
  if (shown.more) rows.push(make("tr", {}, make("th", { scope: "row" }, `and ${counted(shown.more)} more`), make("td"), make("td")));
  at("bars").replaceChildren(head, make("tbody", {}, ...rows));
}

// A release: only after a summary of what is spent, which can be confirmed once.
const going = () => Boolean(shown.release && shown.release.going);
function ready() {
  const why = going() ? "A release is under way" : shown.problem ? "The text is no specification yet" : text !== saved || shown.disk !== seen ? "Save first" : !shown.certified ? "The figures are not computed yet" : "";
  at("save").disabled = text === saved;
  at("release").disabled = why !== "";
  at("release").title = why;
}
function released() {
  const own = shown.release;
  at("released").hidden = !own;
  if (!own) return;
  const told = own.going ? `Releasing: ${own.stage} \u2026` : "";
  if (at("going").textContent !== told) at("going").textContent = told;
  at("share").hidden = !own.going;
  own.share === null ? at("share").removeAttribute("value") : (at("share").value = own.share);
  if (own.going) return at("outcome").replaceChildren();
  const key = JSON.stringify(own);
  if (at("outcome").dataset.key === key && at("outcome").children.length) return;
  at("outcome").dataset.key = key;
  at("released").className = own.failed.length ? "alarm" : "plain";
  at("outcome").replaceChildren(
    ...(own.spent ? [make("p", {}, `Released into ${own.folder}. Spent: ${own.spent}. `, make("a", { id: "report", href: "report", target: "_blank", rel: "noopener" }, "The report"), " is what ", make("code", {}, "matrixdp report"), " makes of it.")] : []),
    ...(own.failed.length && !own.spent ? [make("p", {}, make("strong", {}, own.failed.length > 1 ? "The release was not made." : "The release was not made, and nothing was spent."))] : []),
    ...[...own.failed, ...own.warnings].map((words) => make("p", {}, words)),
  );
}
at("release").addEventListener("click", async () => {
  at("unreleased").textContent = "";
  at("release").disabled = true;
  try {
    offer = await post("summary", { text });
    if (offer.refused) at("unreleased").textContent = offer.refused;
    else {
      const ledger = offer.ledger, number = offer.tables.length;
      const tables = make("ul", {}, ...offer.tables.map(([title, figures]) => make("li", {}, make("bdi", {}, title), `: ${counted(figures)}`)));
      const facts = {
        "Spends": `${offer.budget}. A reader guesses right at most ${odds(offer.guess)} whether a person is in the data.`,
        "Ledger": ledger ? `${ledger.dataset}: ${ledger.before} left before, at least ${ledger.after} after, of ${ledger.total}` : "none: nothing keeps account of what is spent on these data",
        "Protects": offer.protected, "Reads": offer.data, "Writes": offer.folder,
        "Publishes": make("details", {}, make("summary", {}, `${counted(offer.figures)} figures in ${counted(number)} ${number === 1 ? "table" : "tables"}`), tables),
      };
      at("summary").replaceChildren(...Object.entries(facts).flatMap(([name, own]) => [make("dt", {}, name), make("dd", {}, own)]));
      at("confirm").disabled = false;
      at("checkout").showModal();
    }
  } catch (error) { at("unreleased").textContent = error.message; }
  ready();
});
at("cancel").addEventListener("click", () => at("checkout").close());
at("checkout").addEventListener("close", () => at("confirm").disabled || at("release").focus());
at("confirm").addEventListener("click", async () => {
  at("confirm").disabled = true;
  try {
    const found = await post("confirm", { nonce: offer.nonce, digest: offer.digest });
    shown.release = found.release;
    at("unreleased").textContent = found.refused;
    released();
    ask({});
  } catch (error) { at("unreleased").textContent = error.message; }
  at("checkout").close();
  (at("released").hidden ? at("save") : at("released")).focus();
});
for (const [button, words] of [["copy-text", () => text], ["copy-commands", () => shown.commands.join("\n")]]) at(button).addEventListener("click", async () => {
  try { await navigator.clipboard.writeText(words()); say("Copied."); } catch { say("The browser does not let the page copy: select the text."); }
});

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
function save() {
  const typed = at("text").value;
  if (document.activeElement === at("text") && typed !== text) { clearTimeout(at("text").wait); put(typed); }
  return inTurn(async () => {
    try {
      const sent = text, found = await post("save", { text: sent, seen });
      if (!found.saved) return disk(found.disk);
      saved = sent; seen = found.disk;
      at("disk").replaceChildren();
      shown.disk = seen;
      ready();
      say("Saved.");
    } catch (error) { say("Not saved: " + error.message); }
  });
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
