// Error messages contain characters that the search reads as its own syntax, such as a colon: they become spaces.
// The search completes each word, so short words of a pasted message would find other pages: they are omitted.
const plain = (text) => text.replace(/[:^~*+"]|(?<!\S)-/g, " ");
const significant = (text) => plain(text).split(/\s+/).filter((word) => word.length > 3).join(" ");

document.addEventListener("DOMContentLoaded", () => {
  const field = document.querySelector("[data-md-component=search-query]");
  const clean = (change) => {
    if (change(field.value) !== field.value) field.value = change(field.value);
  };
  for (const event of ["input", "keyup"]) field.form.addEventListener(event, () => clean(plain), true);
  field.addEventListener("paste", () => setTimeout(() => {
    if (field.value.trim().includes(" ")) clean(significant);
    field.dispatchEvent(new KeyboardEvent("keyup"));
  }));
  clean(plain);
});
