"use strict";
(() => {
  const unfold = (button) => {
    const body = document.getElementById(button.getAttribute("aria-controls"));
    body.hidden = false;
    button.closest("tbody").remove();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".fold button");
    if (button) unfold(button);
  });

  // A diff that is packed is unpacked when its file is opened.
  const unpack = async (file) => {
    const packed = file && file.querySelector("script.packed");
    if (!packed || packed.dataset.begun) return;
    packed.dataset.begun = "yes";
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (c) => c.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    packed.insertAdjacentHTML("afterend", await new Response(text).text());
    packed.remove();
  };
  document.querySelectorAll("details.file").forEach((file) => {
    file.addEventListener("toggle", () => { if (file.open) unpack(file); });
    if (file.open) unpack(file);
  });

  // A link into a closed file or folded lines opens them first.
  const reveal = async () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const holder = name.match(/^(f\d+)L/);
    if (holder) await unpack(document.getElementById(holder[1]));
    const row = document.getElementById(name);
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

  // What is asked for of the flags: a text, a kind of work, a code.
  const find = document.getElementById("find");
  if (find) {
    const [work, code, found] = ["work", "code", "found"].map((id) => document.getElementById(id));
    const groups = [...document.querySelectorAll("details.flags")];
    const search = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      groups.forEach((group) => {
        const { code: own, work: kind } = group.dataset;
        const wanted = (!work.value || work.value === kind) && (!code.value || code.value === own);
        let some = 0;
        group.querySelectorAll("li").forEach((item) => {
          const text = `${own} ${item.textContent}`.toLowerCase();
          item.hidden = !wanted || !words.every((word) => text.includes(word));
          some += !item.hidden;
        });
        group.hidden = !some;
        if (some && (words.length || work.value || code.value)) group.open = true;
        shown += some;
      });
      found.textContent = `${shown} shown`;
    };
    [find, work, code].forEach((field) => field.addEventListener("input", search));
    find.form.addEventListener("submit", (event) => event.preventDefault());
  }

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

  const reasons = () => [...document.querySelectorAll("details.why")];
  const close = (except) => document.querySelectorAll("details.why[open]").forEach((d) => {
    if (d !== except) d.open = false;
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.why") && event.target.open) close(event.target);
  }, true);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("details.why")) close(null);
  });

  let current = -1;
  const go = (step) => {
    const shown = reasons().filter((d) => d.offsetParent !== null);
    if (!shown.length) return;
    current = (current + step + shown.length) % shown.length;
    shown[current].open = true;
    shown[current].querySelector("summary").focus();
    shown[current].scrollIntoView({ block: "center" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "n") go(1);
    else if (event.key === "p") go(-1);
    else if (event.key === "Escape") close(null);
  });
})();
