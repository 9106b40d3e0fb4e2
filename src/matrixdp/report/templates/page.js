
"use strict";
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let own = target; own; own = own.parentElement) if (own.tagName === "DETAILS") own.open = true;
  target?.scrollIntoView({ block: "nearest" });
};
addEventListener("hashchange", reveal);
reveal();
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
for (const table of document.querySelectorAll("table.answers")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const text = (row, column) => (row.cells[column].firstChild?.textContent ?? "").trim();
  const { thousands, decimal } = document.body.dataset;
  const number = (words) => Number((thousands ? words.replaceAll(thousands, "") : words).replace(decimal, ".").replace(/\s*%$/, ""));
  const places = heads.map((head, column) => {
    const seen = new Map();
    for (const row of rows) if (!seen.has(text(row, column))) seen.set(text(row, column), seen.size);
    return seen;
  });
  const value = (row, column) => {
    const own = text(row, column), found = number(own);
    return heads[column].classList.contains("n") ? (Number.isNaN(found) ? -Infinity : found) : places[column].get(own);
  };
  for (const row of rows.filter((own) => own.id && own.cells[0].firstChild)) {
    const link = document.createElement("a");
    link.href = "#" + encodeURIComponent(row.id);
    link.append(row.cells[0].firstChild);
    row.cells[0].prepend(link);
  }
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      body.append(...[...rows].sort((a, b) => sign * (value(a, column) - value(b, column))));
    });
    head.replaceChildren(button);
  });
  const tools = document.createElement("div"), label = document.createElement("label");
  const input = document.createElement("input"), said = document.createElement("span");
  tools.className = "tools";
  input.type = "search";
  label.append(document.body.dataset.search + " ", input);
  said.setAttribute("role", "status");
  input.addEventListener("input", () => {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const own = [...row.cells].map((cell) => plain(cell.textContent));
      row.hidden = !words.every((word) => own.some((cell) => cell.includes(word)));
      left += !row.hidden;
    }
    said.textContent = words.length ? document.body.dataset.found.replace("{left}", left).replace("{number}", rows.length) : "";
  });
  tools.append(label, said);
  if (rows.length > 12) table.closest(".scroll").before(tools);
}
