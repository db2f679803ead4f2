// What the theme makes while the page is read: its copy buttons are not places to navigate to, and a wide table can be
// scrolled with the keyboard.
const mend = () => {
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.role = "presentation";
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) table.tabIndex = 0;
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
