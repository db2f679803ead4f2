// For people who use a screen reader or only the keyboard: the theme's copy buttons are not places to navigate to, and
// wide tables and drawings can be scrolled.
const mend = () => {
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.role = "presentation";
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .language-text code"))
    if (!wide.hasAttribute("tabindex")) wide.tabIndex = 0;
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
