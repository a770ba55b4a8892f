// What the theme's buttons do. They hold the action's name and not its code, which the page's policy would not run.
const actions = { print: () => window.print() };

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-page-action]");
  if (button) actions[button.dataset.pageAction]?.();
});
