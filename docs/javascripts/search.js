// Queries and the order of results. The search finds pages that have any of the words; first come those that have them
// side by side, so that a pasted message, with names and values where the page has "...", leads to its entry.
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
let asked = [];

// Messages contain characters that the search reads as its own syntax, such as a colon: they become spaces. Short words
// of a message are not looked up: the search would complete them to other words.
const queryOf = (text) => {
  asked = wordsOf(text);
  const words = text.replace(/[:^~*+"]|(?<!\S)-+/g, " ").split(/\s+/).filter(Boolean);
  const long = words.filter((word) => word.length > 3);
  return (words.length > 4 && long.length > 1 ? long : words).join(" ");
};

// The words of each section, between spaces. The results have only excerpts of them.
const indexed = new Map();
const textOf = (html) => ` ${wordsOf(new DOMParser().parseFromString(html, "text/html").body.textContent).join(" ")} `;

// The sum of the squares of the lengths of the runs of words that a text has in common with the query.
const likeness = (text) => {
  let sum = 0;
  for (let start = 0, end; start < asked.length; start = end) {
    end = start + 1;
    while (end < asked.length && text.includes(` ${asked.slice(start, end + 1).join(" ")} `)) end += 1;
    sum += (end - start - 1) ** 2;
  }
  return sum;
};

const rank = (items) => {
  for (const sections of items) {
    for (const section of sections) {
      const found = indexed.get(section.location);
      found.title ??= textOf(found.doc.title);
      found.text ??= textOf(found.doc.text);
      const isAdvice = section.location.startsWith("troubleshooting");
      const isError = isAdvice && /[a-z][A-Z]/.test(found.doc.title);
      const isNamed = isError && asked.includes(found.doc.title.toLowerCase());
      const weight = asked.length < 3 ? 1 : isError ? 30 : isAdvice ? 25 : section.boost ** 2;
      section.score += 1e6 * weight * (10 * likeness(found.title) + likeness(found.text) + 1e3 * isNamed);
    }
    sections.sort((one, other) => other.score - one.score);
  }
  items.sort(([one], [other]) => other.score - one.score);
};

window.Worker = class extends Worker {
  constructor(url) {
    super(url);
    this.addEventListener("message", ({ data }) => asked.length > 1 && data.data?.items && rank(data.data.items));
  }

  postMessage(message) {
    for (const doc of message.data?.docs ?? []) indexed.set(doc.location, { doc });
    return super.postMessage(message);
  }
};

document.addEventListener("DOMContentLoaded", () => {
  const field = document.querySelector("[data-md-component=search-query]");
  const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  Object.defineProperty(field, "value", { get: () => queryOf(get.call(field)), set: (text) => set.call(field, text) });
  field.addEventListener("input", () => field.dispatchEvent(new Event("keyup"))); // pasted with the mouse
});
