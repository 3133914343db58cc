"use strict";
// A link to the live page, beside Locust's name in its header; Locust has no extension point for that.
(() => {
  const ID = "loadgen-live";
  function place() {
    if (document.getElementById(ID)) return;
    const brand = document.querySelector("header a");
    if (!brand) return;
    const link = document.createElement("a");
    link.id = ID;
    link.href = "./llm";
    link.textContent = "LLM live";
    link.title = "Charts of tokens/s, TTFT, GPUs";
    link.style.cssText =
      "color:inherit;font:500 0.9rem system-ui,sans-serif;margin:0 auto 0 1.5rem;white-space:nowrap;text-underline-offset:0.2em";
    brand.after(link);
  }
  new MutationObserver(place).observe(document.getElementById("root"), { childList: true, subtree: true });
  place();
})();
