// Changes single values of a notebook's JSON text, written as its neighbours are, and leaves every other character as it is: numbers
// that JavaScript cannot hold, the order of keys, indentation and line ends. Pure but for the text it holds.
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

  /** What kind of value stands there; undefined: none. */
  kindOf(path: JSONPath): string | undefined {
    return this.#find(path)?.type;
  }

  /** Puts a value in the place of the one there. A key that is new comes where the alphabet has it, as nbformat writes keys. */
  set(path: JSONPath, value: unknown): void {
    const key = path.at(-1);
    const getInsertionIndex = (keys: string[]) => {
      const next = keys.findIndex((each) => typeof key === "string" && each > key);
      return next < 0 ? keys.length : next;
    };
    this.#modify(path, value, { getInsertionIndex });
  }

  /** Puts a value into a list, before the one at this index, or behind the last. */
  insert(path: JSONPath, value: unknown): void {
    this.#modify(path, value, { isArrayInsertion: true });
  }

  /** Takes an element of a list, or a key with its value, out; nothing happens where there is none. */
  remove(path: JSONPath): void {
    const value = this.#find(path);
    const item = value?.parent?.type === "property" ? value.parent : value;
    const siblings = item?.parent?.children;
    if (item?.parent === undefined || siblings === undefined) return;
    const at = siblings.indexOf(item);
    const [before, after] = [siblings[at - 1], siblings[at + 1]];
    // With the comma that belongs to it, and the white space between it and its neighbour.
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

/** As the first key of the text is indented, with the text's own line ends; undefined: all of it is on one line, and so is what comes new. */
function formattingOf(text: string): FormattingOptions | undefined {
  const first = /^\s*\{\r?\n([ \t]+)"/.exec(text);
  if (first === null) return undefined;
  const indent = first[1] ?? "";
  return indent.startsWith("\t") ? { insertSpaces: false, tabSize: 1 } : { insertSpaces: true, tabSize: indent.length };
}
