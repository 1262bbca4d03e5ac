// Buttons that copy: the commands of the next steps, and whatever tables offer. In: text. Out: the clipboard.
(() => {
  "use strict";

  const told = (button, word) => {
    const before = button.dataset.label ?? button.textContent;
    button.dataset.label = before;
    button.textContent = word;
    setTimeout(() => (button.textContent = before), 1500);
  };

  const byHand = (text) => {
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  };

  /** Copy a text, and say on the button whether that worked. */
  window.copyText = (text, button) => {
    const fallback = () => told(button, byHand(text) ? "Copied" : "Not copied");
    if (!navigator.clipboard) fallback();
    else navigator.clipboard.writeText(text).then(() => told(button, "Copied"), fallback);
  };

  const place = document.querySelector(".copy-markdown");
  const button = place.appendChild(document.createElement("button"));
  Object.assign(button, { type: "button", textContent: "Copy as Markdown" });
  button.addEventListener("click", () => window.copyText(JSON.parse(document.getElementById("markdown").textContent), button));

  document.querySelectorAll(".command").forEach((line, at) => {
    const own = line.appendChild(document.createElement("button"));
    const code = line.querySelector("code");
    Object.assign(own, { type: "button", textContent: "Copy" });
    own.setAttribute("aria-label", `Copy command ${at + 1}`);
    own.addEventListener("click", () => window.copyText(code.textContent, own));
  });
})();
