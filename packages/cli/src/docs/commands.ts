// The commands `parley docs …`.

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const force = (about: string) => ({ force: { type: "boolean", about } }) as const;

export const docsCommands: readonly CommandSpec[] = [
  {
    name: "docs list",
    summary: "what the agent is and knows: its documents",
    options: { ...target, removed: { type: "boolean", about: "also those that were removed" } },
    examples: ["parley docs list"],
    load: async () => (await import("../commands/docs-list.ts")).run,
  },
  {
    name: "docs show",
    summary: "the text of one document",
    operands: "<path>",
    maxOperands: 1,
    options: {
      ...target,
      at: { type: "string", value: "<n>", about: "as it was; docs history shows the versions" },
      authors: { type: "boolean", about: "with who wrote it in front of each line" },
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
    summary: "the versions of one document, and who wrote them",
    operands: "<path>",
    maxOperands: 1,
    options: target,
    examples: ["parley docs history MEMORY.md"],
    load: async () => (await import("../commands/docs-history.ts")).run,
  },
  {
    name: "docs diff",
    summary: "what changed in one document, line by line",
    operands: "<path>",
    maxOperands: 1,
    details: "Without --from and --to: the last change.",
    options: {
      ...target,
      from: { type: "string", value: "<n>", about: "the older version; else the one before --to" },
      to: { type: "string", value: "<n>", about: "the newer version; else the one that stands now" },
    },
    examples: ["parley docs diff MEMORY.md", "parley docs diff MEMORY.md --from 3 --to 7"],
    load: async () => (await import("../commands/docs-diff.ts")).run,
  },
  {
    name: "docs restore",
    summary: "make a document what it was; its versions all stay",
    operands: "<path>",
    maxOperands: 1,
    details:
      "The old text becomes a new version, each line with the author that it had then. A document that was removed is there again.",
    options: {
      ...targetOptions,
      version: { type: "string", value: "<n>", about: "whose text it is to have; docs history shows them" },
    },
    examples: ["parley docs restore MEMORY.md --version 3"],
    load: async () => (await import("../commands/docs-restore.ts")).run,
  },
  {
    name: "docs vouch",
    summary: "take all lines of a document on yourself, as it stands",
    operands: "<path>",
    maxOperands: 1,
    details:
      "Shows the lines that outsiders had a hand in, and asks. From a yes on they count as yours: they taint no turn that reads them.",
    options: {
      ...targetOptions,
      version: {
        type: "string",
        value: "<n>",
        about: "the version you have read; asks nothing (docs show --authors says it)",
      },
    },
    examples: ["parley docs vouch memory/letters.md", "parley docs vouch memory/letters.md --version 4"],
    load: async () => (await import("../commands/docs-vouch.ts")).run,
  },
  {
    name: "docs edit",
    summary: "change a document in your editor, or begin one",
    operands: "<path>",
    maxOperands: 1,
    options: targetOptions,
    examples: ["parley docs edit SOUL.md", "EDITOR='code --wait' parley docs edit USER.md"],
    load: async () => (await import("../commands/docs-edit.ts")).run,
  },
  {
    name: "docs pull",
    summary: "bring all documents into a folder",
    operands: "<folder>",
    maxOperands: 1,
    options: { ...targetOptions, ...force("also over files with changes of their own") },
    examples: ["parley docs pull ./docs"],
    load: async () => (await import("../commands/docs-pull.ts")).run,
  },
  {
    name: "docs push",
    summary: "make the documents what a folder has",
    operands: "<folder>",
    maxOperands: 1,
    details: "Nothing is written when the store has a version that the folder was not made from.",
    options: {
      ...targetOptions,
      ...force("also over what is newer there; its versions are kept"),
      "dry-run": { type: "boolean", about: "only say what would be done" },
      delete: { type: "boolean", about: "remove documents whose file is gone" },
    },
    examples: ["parley docs push ./docs --dry-run", "parley docs push ./docs"],
    load: async () => (await import("../commands/docs-push.ts")).run,
  },
];
