// On paper a page is light, and nothing is folded: a sheet has no theme and cannot be touched.
"use strict";

{
  const page = document.documentElement;
  let theme = "";
  let folded = [];

  window.addEventListener("beforeprint", () => {
    theme = page.dataset.theme;
    page.dataset.theme = "light";
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const fold of folded) fold.open = true;
  });

  window.addEventListener("afterprint", () => {
    page.dataset.theme = theme;
    for (const fold of folded) fold.open = false;
  });
}
