/* A passage whose parts can be marked: by the mouse, by touch, or by keys. Offsets count characters
   as Python does (code points); the browser counts UTF-16 units. */
class Passage {
  constructor(node, text) {
    this.node = node;
    this.text = text;
    this.starts = [0];  // UTF-16 offset of each character, and of the end
    for (const letter of text) this.starts.push(this.starts[this.starts.length - 1] + letter.length);
    this.length = this.starts.length - 1;
    this.mark = null;  // [start, end] that is marked
    this.quote = null;  // what the judge quoted, if that is to be shown
    this.draft = null;  // what is being chosen by keys
  }

  show() {
    const layers = [["quote", this.quote], ["own", this.mark], ["draft", this.draft]].filter(([, at]) => at);
    const cuts = new Set([0, this.length]);
    for (const [, [start, end]] of layers) cuts.add(start).add(end);
    const ends = [...cuts].sort((one, other) => one - other);
    const parts = [];
    for (let at = 1; at < ends.length; at++) {
      const piece = this.cut(ends[at - 1], ends[at]);
      const names = layers.filter(([, [start, end]]) => start <= ends[at - 1] && ends[at] <= end).map(([name]) => name);
      parts.push(names.length ? h("mark", { class: names.join(" ") }, piece) : piece);
    }
    this.node.replaceChildren(...parts);
    const shown = this.node.querySelector("mark.draft");
    if (shown) shown.scrollIntoView({ block: "nearest" });
  }

  cut(start, end) { return this.text.slice(this.starts[start], this.starts[end]); }

  /* the character at a UTF-16 offset */
  character(unit) {
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] < unit) low = middle + 1; else high = middle;
    }
    return low;
  }

  /* without the white space at its ends; null if nothing is left */
  trimmed(start, end) {
    while (start < end && /\s/.test(this.cut(start, start + 1))) start++;
    while (start < end && /\s/.test(this.cut(end - 1, end))) end--;
    return start < end ? [start, end] : null;
  }

  /* what the browser has selected in this passage, or null */
  selected() {
    const selection = getSelection();
    if (!selection || !selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    if (!range.intersectsNode(this.node)) return null;
    const inside = document.createRange();
    inside.selectNodeContents(this.node);
    if (range.compareBoundaryPoints(Range.START_TO_START, inside) > 0) inside.setStart(range.startContainer, range.startOffset);
    if (range.compareBoundaryPoints(Range.END_TO_END, inside) < 0) inside.setEnd(range.endContainer, range.endOffset);
    const before = document.createRange();
    before.selectNodeContents(this.node);
    before.setEnd(inside.startContainer, inside.startOffset);
    const start = before.toString().length;
    return this.trimmed(this.character(start), this.character(start + inside.toString().length));
  }

  /* where sentences or words stand, as [start, end] */
  pieces(granularity) {
    const found = [];
    const add = (unit, piece) => {
      const at = this.trimmed(this.character(unit), this.character(unit + piece.length));
      if (at) found.push(at);
    };
    if (typeof Intl === "object" && Intl.Segmenter) {
      for (const { segment, index } of new Intl.Segmenter(undefined, { granularity }).segment(this.text)) add(index, segment);
    } else {
      const pattern = granularity === "word" ? /\S+/g : /[^.!?\n]+[.!?]*/g;
      for (const each of this.text.matchAll(pattern)) add(each.index, each[0]);
    }
    return found.length ? found : [[0, this.length]];
  }

  /* choose by keys: sentence by sentence, then word by word at the end, and at the start */
  begin() {
    const first = this.pieces("sentence")[0];
    this.draft = this.mark ? [...this.mark] : first;
    this.show();
  }

  move(key, wide) {
    if (key === "ArrowDown" || key === "ArrowUp") this.bySentence(key === "ArrowDown" ? 1 : -1, wide);
    else this.byWord(key === "ArrowRight" ? 1 : -1, wide);
    this.show();
  }

  bySentence(step, wide) {
    const sentences = this.pieces("sentence");
    const [start, end] = this.draft;
    let last = sentences.findIndex((each) => end <= each[1]);
    if (last < 0) last = sentences.length - 1;
    const to = Math.min(sentences.length - 1, Math.max(0, last + step));
    const from = wide ? Math.min(start, sentences[to][0]) : sentences[to][0];
    this.draft = [from, Math.max(sentences[to][1], from + 1)];
  }

  byWord(step, atStart) {
    const words = this.pieces("word");
    const [start, end] = this.draft;
    if (atStart) {
      const at = step > 0 ? words.find((each) => each[0] > start) : words.findLast((each) => each[0] < start);
      if (at && at[0] < end) this.draft = [at[0], end];
    } else {
      const at = step > 0 ? words.find((each) => each[1] > end) : words.findLast((each) => each[1] < end);
      if (at && at[1] > start) this.draft = [start, at[1]];
    }
  }

  finish(kept) {
    if (kept) this.mark = this.draft;
    this.draft = null;
    this.show();
  }
}
