// WhatsApp's formatting, as its apps show it: *bold*, _italic_, ~struck~, `code` and ```blocks```.

/** A mark opens after white space or punctuation and closes before it, on one line, with no white space inside of it. */
const marks = [
  /(?<![\p{L}\p{N}*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\p{L}\p{N}*])/gu,
  /(?<![\p{L}\p{N}_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\p{L}\p{N}_])/gu,
  /(?<![\p{L}\p{N}~])~(?=[^\s~])([^~\n]*[^\s~])~(?![\p{L}\p{N}~])/gu,
];

/** The text without the marks that take effect. */
export function shownText(text: string): string {
  const pieces = text.split(/(```[^]*?```|`[^`\n]+`)/);
  return pieces
    .map((piece, index) => {
      if (index % 2 === 1) return piece.replaceAll("`", "");
      return marks.reduce((rest, mark) => rest.replaceAll(mark, "$1"), piece);
    })
    .join("");
}
