// BERT's uncased WordPiece, piece for piece what the Python tokenizer of the model makes of a text.
//
// Which characters vanish, separate words or stand alone is not asked of the browser, whose
// Unicode is newer: the build asks the Python tokenizer about every character (vocabulary.js).
"use strict";
(() => {
  const space = (self.bertologyPlayground ??= {});

  // Sorted code points at which a class of characters begins and ends, in turn.
  const inside = (edges, point) => {
    let low = 0, high = edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= point) low = middle + 1;
      else high = middle;
    }
    return low % 2 === 1;
  };
  // Differences between neighbours, as they are stored, to sums.
  const edgesOf = (steps) => {
    let at = 0;
    return steps.map((step) => (at += step));
  };

  class WordPiece {
    // vocabulary: {pieces: [..], special: {name: id}, longest, classes: {removed, blank, alone,
    // ideograph}}, each class as steps between edges.
    constructor(vocabulary) {
      this.pieces = vocabulary.pieces;
      this.special = vocabulary.special;
      this.longest = vocabulary.longest;
      this.ids = new Map(this.pieces.map((piece, id) => [piece, id]));
      this.classes = Object.fromEntries(
        Object.entries(vocabulary.classes).map(([name, steps]) => [name, edgesOf(steps)]));
      const names = Object.keys(this.special).map((name) => name.replace(/[[\]]/g, "\\$&"));
      this.marker = new RegExp(`(${names.join("|")})`, "g");
    }

    // The pieces of a text, without [CLS] and [SEP]: [{id, piece, start, end}]; start and end
    // count UTF-16 units of the text.
    pieceUp(text) {
      const found = [];
      let at = 0;
      for (const part of text.split(this.marker)) {
        if (Object.hasOwn(this.special, part)) {
          found.push(this.token(this.special[part], at, at + part.length));
        } else {
          for (const word of this.words(part, at)) found.push(...this.split(word));
        }
        at += part.length;
      }
      return found;
    }

    token(id, start, end) {
      return { id, piece: this.pieces[id], start, end };
    }

    // Words of a stretch of text: lists of [character after normalisation, start, end].
    words(text, offset) {
      const { removed, blank, alone, ideograph } = this.classes;
      const words = [];
      let word = [];
      const close = () => {
        if (word.length) words.push(word);
        word = [];
      };
      let at = offset;
      for (const character of text) {
        const start = at, end = (at += character.length);
        const point = character.codePointAt(0);
        if (inside(removed, point)) continue;
        if (inside(blank, point)) {
          close();
          continue;
        }
        const apart = inside(ideograph, point);
        if (apart) close();
        for (const base of character.normalize("NFD")) {
          if (inside(removed, base.codePointAt(0))) continue;
          // Letter by letter: a whole word in lower case has another sigma at its end.
          for (const letter of base.toLowerCase()) {
            if (inside(alone, letter.codePointAt(0))) {
              close();
              words.push([[letter, start, end]]);
            } else {
              word.push([letter, start, end]);
            }
          }
        }
        if (apart) close();
      }
      close();
      return words;
    }

    // The longest pieces that make up a word, from its beginning; [UNK] if there are none.
    split(word) {
      const unknown = [this.token(this.special["[UNK]"], word[0][1], word.at(-1)[2])];
      if (word.length > this.longest) return unknown;
      const letters = word.map(([letter]) => letter);
      const found = [];
      for (let begin = 0; begin < word.length;) {
        let end = word.length, id;
        for (; end > begin; end--) {
          id = this.ids.get((begin ? "##" : "") + letters.slice(begin, end).join(""));
          if (id !== undefined) break;
        }
        if (end === begin) return unknown;
        found.push(this.token(id, word[begin][1], word[end - 1][2]));
        begin = end;
      }
      return found;
    }

    // What the model reads: the pieces between [CLS] and [SEP].
    encode(text) {
      const { "[CLS]": first, "[SEP]": last } = this.special;
      return [
        this.token(first, 0, 0), ...this.pieceUp(text), this.token(last, text.length, text.length),
      ];
    }
  }

  space.WordPiece = WordPiece;
})();
