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
