// Changes single values of a notebook's JSON text in the style of their neighbours and preserves every other character: numbers
// outside JavaScript's range, key order, indentation and line ends. No I/O.
import {
  applyEdits,
  findNodeAtLocation,
  modify,
  parseTree,
  type FormattingOptions,
  type JSONPath,
  type ModificationOptions,
  type Node,
} from "jsonc-parser";

export class NotebookText {
  #text: string;
  readonly #formatting: FormattingOptions | undefined;

  /** The text must be JSON. */
  constructor(text: string) {
    this.#text = text;
    this.#formatting = formattingOf(text);
  }

  get text(): string {
    return this.#text;
  }

  /** The type of the value at the path; undefined if there is none. */
  kindOf(path: JSONPath): string | undefined {
    return this.#find(path)?.type;
  }

  /** Sets the value at the path. A new key is inserted in alphabetical order, as nbformat writes keys. */
  set(path: JSONPath, value: unknown): void {
    const key = path.at(-1);
    const getInsertionIndex = (keys: string[]) => {
      const next = keys.findIndex((each) => typeof key === "string" && each > key);
      return next < 0 ? keys.length : next;
    };
    this.#modify(path, value, { getInsertionIndex });
  }

  /** Inserts a value into a list before the given index, or at the end. */
  insert(path: JSONPath, value: unknown): void {
    this.#modify(path, value, { isArrayInsertion: true });
  }

  /** Removes a list element, or a key with its value; does nothing if there is none. */
  remove(path: JSONPath): void {
    const value = this.#find(path);
    const item = value?.parent?.type === "property" ? value.parent : value;
    const siblings = item?.parent?.children;
    if (item?.parent === undefined || siblings === undefined) return;
    const at = siblings.indexOf(item);
    const [before, after] = [siblings[at - 1], siblings[at + 1]];
    // Includes the element's comma and the white space between it and its neighbour.
    let [from, to] = [item.parent.offset + 1, endOf(item.parent) - 1];
    if (before !== undefined) [from, to] = [endOf(before), endOf(item)];
    else if (after !== undefined) [from, to] = [item.offset, after.offset];
    this.#text = this.#text.slice(0, from) + this.#text.slice(to);
  }

  #find(path: JSONPath): Node | undefined {
    const root = parseTree(this.#text);
    return root === undefined ? undefined : findNodeAtLocation(root, path);
  }

  #modify(path: JSONPath, value: unknown, options: ModificationOptions): void {
    const formatting = this.#formatting === undefined ? {} : { formattingOptions: this.#formatting };
    this.#text = applyEdits(this.#text, modify(this.#text, path, value, { ...options, ...formatting }));
  }
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

/** The indentation of the text's first key; undefined if the text is on one line: new values then are on that line too. */
function formattingOf(text: string): FormattingOptions | undefined {
  const first = /^\s*\{\r?\n([ \t]+)"/.exec(text);
  if (first === null) return undefined;
  const indent = first[1] ?? "";
  return indent.startsWith("\t") ? { insertSpaces: false, tabSize: 1 } : { insertSpaces: true, tabSize: indent.length };
}
