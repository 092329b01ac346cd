// The commands `parley docs …`.

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const force = (about: string) => ({ force: { type: "boolean", about } }) as const;

export const docsCommands: readonly CommandSpec[] = [
  {
    name: "docs list",
    summary: "list the agent's documents: instructions and memory",
    options: { ...target, removed: { type: "boolean", about: "include removed documents" } },
    examples: ["parley docs list"],
    load: async () => (await import("../commands/docs-list.ts")).run,
  },
  {
    name: "docs show",
    summary: "print the text of one document",
    operands: "<path>",
    maxOperands: 1,
    options: {
      ...target,
      at: { type: "string", value: "<n>", about: "an older version; docs history shows them" },
      authors: { type: "boolean", about: "print the author before each line" },
    },
    examples: [
      "parley docs show MEMORY.md",
      "parley docs show MEMORY.md --at 3",
      "parley docs show MEMORY.md --authors",
    ],
    load: async () => (await import("../commands/docs-show.ts")).run,
  },
  {
    name: "docs history",
    summary: "list the versions of one document and their authors",
    operands: "<path>",
    maxOperands: 1,
    options: target,
    examples: ["parley docs history MEMORY.md"],
    load: async () => (await import("../commands/docs-history.ts")).run,
  },
  {
    name: "docs diff",
    summary: "show the changes between two versions of a document",
    operands: "<path>",
    maxOperands: 1,
    details: "Without --from and --to, it shows the last change.",
    options: {
      ...target,
      from: { type: "string", value: "<n>", about: "the older version; default: the one before --to" },
      to: { type: "string", value: "<n>", about: "the newer version; default: the current one" },
    },
    examples: ["parley docs diff MEMORY.md", "parley docs diff MEMORY.md --from 3 --to 7"],
    load: async () => (await import("../commands/docs-diff.ts")).run,
  },
  {
    name: "docs restore",
    summary: "restore an older version of a document; all versions are kept",
    operands: "<path>",
    maxOperands: 1,
    details:
      "The old text becomes a new version, and each line keeps its author of that time. This also restores a removed document.",
    options: {
      ...targetOptions,
      version: { type: "string", value: "<n>", about: "the version to restore; docs history shows them" },
    },
    examples: ["parley docs restore MEMORY.md --version 3"],
    load: async () => (await import("../commands/docs-restore.ts")).run,
  },
  {
    name: "docs vouch",
    summary: "mark all lines of a document as trusted",
    operands: "<path>",
    maxOperands: 1,
    details:
      "Shows the untrusted lines and asks for confirmation. The lines then count as yours, and reading them no longer taints a turn.",
    options: {
      ...targetOptions,
      version: {
        type: "string",
        value: "<n>",
        about: "the version that you have read, without confirmation (docs show --authors prints it)",
      },
    },
    examples: ["parley docs vouch memory/letters.md", "parley docs vouch memory/letters.md --version 4"],
    load: async () => (await import("../commands/docs-vouch.ts")).run,
  },
  {
    name: "docs edit",
    summary: "edit or create a document in your editor",
    operands: "<path>",
    maxOperands: 1,
    options: targetOptions,
    examples: ["parley docs edit SOUL.md", "EDITOR='code --wait' parley docs edit USER.md"],
    load: async () => (await import("../commands/docs-edit.ts")).run,
  },
  {
    name: "docs pull",
    summary: "copy all documents into a folder",
    operands: "<folder>",
    maxOperands: 1,
    options: { ...targetOptions, ...force("overwrite files with local changes") },
    examples: ["parley docs pull ./docs"],
    load: async () => (await import("../commands/docs-pull.ts")).run,
  },
  {
    name: "docs push",
    summary: "write the documents of a folder to the store",
    operands: "<folder>",
    maxOperands: 1,
    details: "Nothing is written if the store has a newer version than the folder's base.",
    options: {
      ...targetOptions,
      ...force("overwrite newer versions in the store; they stay in the history"),
      "dry-run": { type: "boolean", about: "only print what would be done" },
      delete: { type: "boolean", about: "remove documents whose file is gone" },
    },
    examples: ["parley docs push ./docs --dry-run", "parley docs push ./docs"],
    load: async () => (await import("../commands/docs-push.ts")).run,
  },
];
