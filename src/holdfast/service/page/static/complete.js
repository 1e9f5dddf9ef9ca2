// Columns, keys and words, offered while a question is typed. The arrows choose, Enter or Tab takes what is chosen, Escape
// closes the list; nothing is chosen until an arrow is pressed, so that Enter and Tab else do what they always do.
"use strict";

(() => {
  const ask = document.getElementById("ask");
  if (!ask) return;
  const {columns, condition, sql} = JSON.parse(ask.dataset.completions), most = 8;
  const spelt = name => /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
  const begins = (word, typed) => word.toLowerCase().startsWith(typed.toLowerCase()) && word !== typed;

  // What may follow a text: whole words, and how many letters of its end they replace.
  const offers = (text, words) => {
    const open = text.match(/([\w.]+|"[^"]+")\s*(?:=|==|<>|!=|\bLIKE|\bIN\s*\([^()]*?)\s*'([^']*)$/i);
    if ((text.split("'").length - 1) % 2) {
      const keys = open ? columns[open[1].replaceAll('"', "")] ?? [] : [], typed = open?.[2] ?? "";
      return [keys.filter(key => begins(key, typed)).map(key => `${key.replaceAll("'", "''")}'`), typed.length];
    }
    const typed = text.match(/"?[A-Za-z_][\w.]*$/)?.[0] ?? "";
    const names = Object.keys(columns).map(spelt);
    return [typed ? [...names, ...words].filter(word => begins(word, typed)) : [], typed.length];
  };

  const complete = (field, words) => {
    const list = document.createElement("ul");
    Object.assign(list, {id: `${field.id}-offers`, className: "offers code", hidden: true});
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "completions");
    field.after(list);
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", list.id);
    let chosen = -1, replaced = 0;

    const close = () => {
      list.hidden = true;
      chosen = -1;
      field.removeAttribute("aria-activedescendant");
    };
    const take = word => {
      field.setRangeText(word, field.selectionStart - replaced, field.selectionStart, "end");
      close();
      field.dispatchEvent(new Event("input", {bubbles: true}));
      close();
    };
    const offer = () => {
      close();
      if (field.selectionStart !== field.selectionEnd) return;
      const [found, length] = offers(field.value.slice(0, field.selectionStart), words);
      replaced = length;
      list.replaceChildren(...found.slice(0, most).map((word, place) => {
        const item = Object.assign(document.createElement("li"), {id: `${list.id}-${place}`, textContent: word});
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        item.addEventListener("mousedown", event => { event.preventDefault(); take(word); });
        return item;
      }));
      list.hidden = !found.length;
    };
    const choose = place => {
      const items = [...list.children];
      chosen = (place + items.length) % items.length;
      items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
      field.setAttribute("aria-activedescendant", items[chosen].id);
    };
    field.addEventListener("input", offer);
    field.addEventListener("blur", close);
    field.addEventListener("keydown", event => {
      if (list.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") choose(chosen + (event.key === "ArrowDown" ? 1 : chosen < 0 ? 0 : -1));
      else if (event.key === "Escape") close();
      else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) take(list.children[chosen].textContent);
      else return;
      event.preventDefault();
    });
  };
  for (const name of ["text", "where", "against", "given"]) {
    complete(document.getElementById(name), name === "text" ? sql : condition);
  }
})();
