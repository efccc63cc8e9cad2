"use strict";
(() => {
  const unfold = (button) => {
    const body = document.getElementById(button.getAttribute("aria-controls"));
    body.hidden = false;
    button.closest("tbody").remove();
  };
  document.querySelectorAll(".fold button").forEach((button) => {
    button.addEventListener("click", () => unfold(button));
  });

  // A link into a closed file or folded lines opens them first.
  const reveal = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!row) return;
    const body = row.closest("tbody");
    if (body && body.hidden) {
      unfold(document.querySelector(`[aria-controls="${body.id}"]`));
    }
    const file = row.closest("details.file");
    if (file) file.open = true;
    row.scrollIntoView({ block: "center" });
  };
  window.addEventListener("hashchange", reveal);
  reveal();

  document.querySelectorAll("input.only").forEach((box) => {
    const table = document.getElementById(box.getAttribute("aria-controls"));
    box.addEventListener("change", () => table.classList.toggle("bad-only", box.checked));
  });

  // Rows of the map: a Cell's name, or a click on one of its fields, opens what lies below it.
  const toggle = (row) => {
    const button = row.querySelector("th button");
    if (!button) return;
    const more = document.getElementById(button.getAttribute("aria-controls"));
    more.hidden = !more.hidden;
    button.setAttribute("aria-expanded", String(!more.hidden));
  };
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  document.querySelectorAll("table.h").forEach((table) => {
    const squares = [...table.querySelectorAll("td.sq")];
    squares.forEach((cell, number) => { cell.tabIndex = number ? -1 : 0; });
    const move = (cell, to) => {
      if (!to) return;
      squares.forEach((one) => { one.tabIndex = -1; });
      to.tabIndex = 0;
      to.focus();
    };
    table.addEventListener("click", (event) => {
      if (event.target.closest("th button,td.sq")) toggle(event.target.closest("tr"));
    });
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td.sq");
      if (!cell) return;
      const row = cell.parentElement;
      const place = [...row.cells].indexOf(cell);
      if (event.key === "Enter" || event.key === " ") toggle(row);
      else if (event.key === "Home") move(cell, row.querySelector("td.sq"));
      else if (event.key === "End") move(cell, row.cells[row.cells.length - 1]);
      else if (step[event.key]) {
        const [down, right] = step[event.key];
        const rows = squares.map((one) => one.parentElement)
          .filter((one, number, all) => all.indexOf(one) === number && one.offsetParent);
        const next = rows[rows.indexOf(row) + down];
        const to = next && next.cells[place + right];
        move(cell, to && to.classList.contains("sq") ? to : null);
      } else return;
      event.preventDefault();
    });
  });

  const reasons = [...document.querySelectorAll("details.why")];
  const close = (except) => reasons.forEach((d) => { if (d !== except) d.open = false; });
  reasons.forEach((d) => d.addEventListener("toggle", () => { if (d.open) close(d); }));
  document.addEventListener("click", (event) => {
    if (!event.target.closest("details.why")) close(null);
  });

  let current = -1;
  const go = (step) => {
    const shown = reasons.filter((d) => d.offsetParent !== null);
    if (!shown.length) return;
    current = (current + step + shown.length) % shown.length;
    shown[current].open = true;
    shown[current].querySelector("summary").focus();
    shown[current].scrollIntoView({ block: "center" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
    if (event.key === "n") go(1);
    else if (event.key === "p") go(-1);
    else if (event.key === "Escape") close(null);
  });
})();
