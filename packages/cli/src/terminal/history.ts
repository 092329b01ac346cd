// The messages typed in earlier chats: a file of the data folder, newest first, one message a line. A message of several lines is stored
// as a JSON string.

import { readFileSync, renameSync, writeFileSync } from "node:fs";

import { parseJson } from "@parley/kit";

const maxMessages = 500;

export class History {
  readonly #file: string;
  #messages: string[];

  /** A file that cannot be read is an empty history. */
  constructor(file: string) {
    this.#file = file;
    this.#messages = read(file);
  }

  /** Newest first. */
  get messages(): readonly string[] {
    return this.#messages;
  }

  /** Adds a message, or moves it to the front, and stores the file. Failing to store it is not an error. */
  add(text: string): void {
    this.#messages = [text, ...this.#messages.filter((each) => each !== text)].slice(0, maxMessages);
    try {
      // Write, then rename: on a full disk the previous history stays.
      writeFileSync(`${this.#file}.new`, this.#messages.map((each) => `${encode(each)}\n`).join(""), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    } catch {
      // The next message tries again.
    }
  }

  /** Messages that contain all words, newest first. */
  search(words: string): string[] {
    const wanted = words
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    return this.#messages.filter((text) => wanted.every((word) => text.toLowerCase().includes(word)));
  }
}

function encode(text: string): string {
  return text.includes("\n") || text.startsWith('"') ? JSON.stringify(text) : text;
}

function decode(line: string): string {
  const value = line.startsWith('"') ? parseJson(line) : undefined;
  return typeof value === "string" ? value : line;
}

function read(file: string): string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map(decode);
  } catch {
    return [];
  }
}
