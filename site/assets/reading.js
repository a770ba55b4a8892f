// Which pages this reader has read to their end: kept in their browser alone, shown as ticks in the side bar.
(() => {
  const key = "course-read";
  // Private windows and strict settings refuse storage: then nothing is kept, and nothing breaks.
  const load = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
      return new Set(Array.isArray(kept) ? kept : []);
    } catch {
      return new Set();
    }
  };
  const save = (read) => {
    try {
      localStorage.setItem(key, JSON.stringify([...read]));
    } catch {}
  };
  const root = new URL(document.documentElement.dataset.content_root ?? "./", document.baseURI).pathname;
  const nameOf = (url) => url.pathname.slice(root.length).replace(/\.html$/, "");
  const here = nameOf(new URL(document.baseURI));

  const show = (read) => {
    const links = document.querySelectorAll(".bd-sidebar-primary .bd-links a.reference.internal");
    for (const link of links) {
      const done = read.has(nameOf(new URL(link.href)));
      link.classList.toggle("has-been-read", done);
      link.querySelector(".read-word")?.remove();
      if (done) {
        const word = document.createElement("span");
        word.className = "read-word visually-hidden";
        word.textContent = " (read)";
        link.append(word);
      }
    }
    const line = document.querySelector(".reading-line");
    line.querySelector(".reading-done")?.remove();
    if (!read.has(here)) return;
    const done = document.createElement("span");
    done.className = "reading-done";
    done.textContent = "✓ read ";
    const forget = document.createElement("button");
    forget.type = "button";
    forget.textContent = "mark as not read";
    forget.addEventListener("click", () => {
      const now = load();
      now.delete(here);
      save(now);
      show(now);
    });
    done.append(forget);
    line.append(done);
  };

  document.addEventListener("DOMContentLoaded", () => {
    show(load());
    // Seen to its end: the links to the neighbours have come into view after the reader has scrolled.
    const end = document.querySelector(".prev-next-footer, footer.prev-next-footer, .prev-next-area");
    if (!end) return;
    let scrolled = false;
    addEventListener("scroll", () => (scrolled = true), { once: true, passive: true });
    new IntersectionObserver((entries, observer) => {
      if (!scrolled || !entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      const read = load().add(here);
      save(read);
      show(read);
    }).observe(end);
  });
})();
