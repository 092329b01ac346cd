// The few things of a document that are used here, by the names under which the libraries' types ask for them. The real types
// belong to browsers and would bring a browser's globals with them.
interface Window {
  document: Document;
}

interface Document {
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
  readonly documentElement: Element | null;
  toString(): string;
}

interface Element {
  readonly textContent: string | null;
  readonly innerHTML: string;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  remove(): void;
}
