// Completes the links of 404.html. That page asks for this script at each folder above the missing address; where it is
// found, it knows from its own address where the site begins. It may be found twice, with the same result.
"use strict";

{
  const root = new URL("../", document.currentScript.src);
  for (const link of document.querySelectorAll("[data-page]")) link.href = new URL(link.dataset.page, root).href;
  for (const form of document.querySelectorAll("[data-action]")) form.action = new URL(form.dataset.action, root).href;
  document.getElementById("ways").hidden = false;
  document.getElementById("up").hidden = true;

  // The theme that the reader has chosen on another page, or else the system's.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    let chosen = "";
    try {
      chosen = localStorage.getItem("mode");
    } catch {
      // A strict setting refuses storage: then the system's.
    }
    document.documentElement.dataset.theme = ["light", "dark"].includes(chosen) ? chosen : dark.matches ? "dark" : "light";
  };
  dark.addEventListener("change", show);
  show();
}
