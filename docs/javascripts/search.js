// What the search gets for the words in its field. Error messages contain characters that the search reads as its own
// syntax, such as a colon: they become spaces. A whole message is looked up in the text of the pages, not in their
// titles, and without short words, which the search would complete to other words.
const queryOf = (text) => {
  const words = text.replace(/[:^~*+"]|(?<!\S)-/g, " ").split(/\s+/).filter(Boolean);
  const isMessage = words.length > 4;
  return isMessage ? words.filter((word) => word.length > 3).map((word) => `text:${word}`).join(" ") : words.join(" ");
};

document.addEventListener("DOMContentLoaded", () => {
  const field = document.querySelector("[data-md-component=search-query]");
  const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  Object.defineProperty(field, "value", { get: () => queryOf(get.call(field)), set: (text) => set.call(field, text) });
});
