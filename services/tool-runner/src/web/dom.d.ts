// The DOM types that this service uses, under the names that the libraries' types require. TypeScript's `dom` library would also
// declare a browser's globals.
interface Window {
  document: Document;
}

interface Document {
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
  readonly documentElement: Element | null;
  createElement(name: string): Element;
  toString(): string;
}

interface Node {
  readonly nodeName: string;
}

interface Element extends Node {
  readonly childNodes: Iterable<Node>;
  append(...nodes: Node[]): void;
  readonly textContent: string | null;
  readonly innerHTML: string;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  remove(): void;
}
