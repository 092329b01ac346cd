// The commands `parley docs …`.

import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { edit, restore, vouch } from "../docs/changes.ts";
import { paintDiff, unifiedDiff, versionsOf } from "../docs/diff.ts";
import { fetchAuthored, fetchDocument, fetchNewest } from "../docs/documents.ts";
import { pull, push } from "../docs/sync.ts";
import { authoredNote, authoredText } from "../docs/trust.ts";
import { CliError, exitCodes, note, painter, print, printJson, UsageError } from "../io/io.ts";
import { flag, jsonOption, targetOptions, text, type OptionValues } from "../io/options.ts";
import { stripControl } from "../tables/format.ts";
import { documentsTable, historyTable } from "../tables/lists.ts";
import { operand, request, type Call, type CommandSpec } from "./command.ts";

/** A command on one document or folder, which the first operand names. */
function onPath(
  {
    missing = "Name a document; parley docs list shows them.",
    ...spec
  }: Omit<CommandSpec, "run"> & { missing?: string },
  work: (gateway: Gateway, path: string, call: Call) => Promise<number | void>,
): CommandSpec {
  return {
    operands: ["<path>"],
    ...spec,
    options: { ...targetOptions, ...spec.options },
    run: async (call) => {
      const path = operand(call.positionals, missing);
      return (await work(new Gateway(findTarget(call.values, call.io)), path, call)) ?? exitCodes.ok;
    },
  };
}

function versionIn(values: OptionValues, name: string): number | undefined {
  return values.number(name, "a version; parley docs history shows them");
}

export const docsCommands: readonly CommandSpec[] = [
  request(
    {
      name: "docs list",
      summary: "list the agent's documents: instructions and memory",
      options: { removed: flag("include removed documents") },
      examples: ["parley docs list"],
    },
    async (gateway, { values }) => {
      const found = await gateway.run(api.documents, { removed: values.has("removed") ? true : undefined });
      return { data: found, text: (paint) => documentsTable(found.documents, paint) };
    },
  ),
  onPath(
    {
      name: "docs show",
      summary: "print the text of one document",
      options: {
        ...jsonOption,
        at: text("<n>", "an older version; docs history shows them"),
        authors: flag("print the author before each line"),
      },
      examples: [
        "parley docs show MEMORY.md",
        "parley docs show MEMORY.md --at 3",
        "parley docs show MEMORY.md --authors",
      ],
    },
    async (gateway, path, { values, io }) => {
      const version = versionIn(values, "at");
      if (!values.has("authors")) {
        const document = await fetchDocument(gateway, path, version);
        if (values.has("json")) printJson(io, document);
        // Byte for byte, except on a terminal.
        else io.stdout.write(io.stdout.isTTY ? stripControl(document.content) : document.content);
        return;
      }
      const document = await fetchAuthored(gateway, path, version);
      if (values.has("json")) return printJson(io, document);
      io.stdout.write(authoredText(document, painter(io.stdout, io.env)));
      if (version === undefined) note(io, authoredNote(document));
    },
  ),
  onPath(
    {
      name: "docs history",
      summary: "list the versions of one document and their authors",
      options: jsonOption,
      examples: ["parley docs history MEMORY.md"],
    },
    async (gateway, path, { values, io }) => {
      const answer = await gateway.run(api.documentHistory, { path, limit: 200 });
      if (answer.versions.length === 0) throw new CliError(`There has never been a document ${path}.`);
      if (values.has("json")) printJson(io, answer);
      else print(io, historyTable(answer.versions, painter(io.stdout, io.env)));
      if (answer.more) note(io, "Older versions are not shown.");
    },
  ),
  onPath(
    {
      name: "docs diff",
      summary: "show the changes between two versions of a document",
      details: "Without --from and --to, it shows the last change.",
      options: {
        ...jsonOption,
        from: text("<n>", "the older version; default: the one before --to"),
        to: text("<n>", "the newer version; default: the current one"),
      },
      examples: ["parley docs diff MEMORY.md", "parley docs diff MEMORY.md --from 3 --to 7"],
    },
    async (gateway, path, { values, io }) => {
      const given = { from: versionIn(values, "from"), to: versionIn(values, "to") };
      const { from, to } = versionsOf(given, (await fetchNewest(gateway, path)).version);
      const sideOf = async (version: number) => (version === 0 ? null : fetchDocument(gateway, path, version));
      const patch = unifiedDiff(path, await sideOf(from), await sideOf(to));
      if (patch === null)
        throw new CliError(`Versions ${from} and ${to} of ${path} are too different to compare.`, {
          fix: `parley docs show ${path} --at ${from} shows one of them.`,
        });
      if (values.has("json")) printJson(io, { path, from, to, patch });
      else if (patch === "") note(io, `Versions ${from} and ${to} of ${path} have the same text.`);
      else io.stdout.write(io.stdout.isTTY ? paintDiff(stripControl(patch), painter(io.stdout, io.env)) : patch);
    },
  ),
  onPath(
    {
      name: "docs restore",
      summary: "restore an older version of a document; all versions are kept",
      details:
        "The old text becomes a new version, and each line keeps its author of that time. This also restores a removed document.",
      options: { version: text("<n>", "the version to restore; docs history shows them") },
      examples: ["parley docs restore MEMORY.md --version 3"],
    },
    async (gateway, path, { values, io }) => {
      const version = versionIn(values, "version");
      if (version === undefined)
        throw new UsageError(`Name a version with --version; parley docs history ${path} lists them.`);
      await restore(gateway, path, version, io);
    },
  ),
  onPath(
    {
      name: "docs vouch",
      summary: "mark all lines of a document as trusted",
      details:
        "Shows the untrusted lines and asks for confirmation. The lines then count as yours, and reading them no longer taints a turn.",
      options: {
        version: text("<n>", "the version that you have read, without confirmation (docs show --authors prints it)"),
      },
      examples: ["parley docs vouch memory/letters.md", "parley docs vouch memory/letters.md --version 4"],
    },
    (gateway, path, { values, io }) => vouch(gateway, path, versionIn(values, "version"), io),
  ),
  onPath(
    {
      name: "docs edit",
      summary: "edit or create a document in your editor",
      options: {},
      missing: "Name a document: parley docs edit MEMORY.md",
      examples: ["parley docs edit SOUL.md", "EDITOR='code --wait' parley docs edit USER.md"],
    },
    (gateway, path, { io }) => edit(gateway, path, io),
  ),
  onPath(
    {
      name: "docs pull",
      summary: "copy all documents into a folder",
      operands: ["<folder>"],
      options: { force: flag("overwrite files with local changes") },
      missing: "Name a folder: parley docs pull ./docs",
      examples: ["parley docs pull ./docs"],
    },
    (gateway, folder, { values, io }) => pull(gateway, folder, values.has("force"), io),
  ),
  onPath(
    {
      name: "docs push",
      summary: "write the documents of a folder to the store",
      operands: ["<folder>"],
      details: "Nothing is written if the store has a newer version than the folder's base.",
      options: {
        force: flag("overwrite newer versions in the store; they stay in the history"),
        "dry-run": flag("only print what would be done"),
        delete: flag("remove documents whose file is gone"),
      },
      missing: "Name a folder: parley docs push ./docs",
      examples: ["parley docs push ./docs --dry-run", "parley docs push ./docs"],
    },
    (gateway, folder, { values, io }) => {
      const options = { force: values.has("force"), dryRun: values.has("dry-run"), remove: values.has("delete") };
      return push(gateway, folder, options, io);
    },
  ),
];
