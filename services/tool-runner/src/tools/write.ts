// The tool `write`: creates a file or replaces its complete content.
import { z } from "zod";
import { pluralize } from "@parley/kit";
import { resolveDocument } from "./document-access.ts";
import { defineTool, success } from "../tool/tool.ts";
import { whileLocked } from "../workspace/locks.ts";
import { displayPath } from "../workspace/paths.ts";
import { reserveSpace, replaceFile } from "../workspace/replace.ts";
import { writeDocument } from "./document-files.ts";

export const writeTool = defineTool({
  name: "write",
  aliases: ["write_file", "Write"],
  summary: "Create a file, or replace its complete content.",
  description:
    "Create a workspace file and its directories, or replace its complete content. To change part of a file, use edit.",
  args: z.strictObject({
    path: z.string().min(1).describe("Path in the workspace."),
    content: z.string().describe("The complete new content."),
  }),
  examples: [{ path: "notes/plan.md", content: "# Plan\n\nBuy tea.\n" }],
  class: "idempotent",
  readOnly: false,
  risk: "medium",
  effects: ["writes_files"],
  resource: { kind: "path", argument: "path" },
  timeoutMs: 30_000,
  run: async (args, context) => {
    const document = resolveDocument(args.path, context);
    if (document !== undefined) return writeDocument(document, args.content, context);
    const bytes = Buffer.byteLength(args.content);
    await reserveSpace(context.workspace, args.path, bytes);
    return whileLocked(context.workspace, [args.path], context, async () => {
      await context.checkpoint.track([args.path]);
      await using place = await context.workspace.resolve(args.path, { createParents: true });
      await replaceFile(place, args.content);
      const lines = args.content === "" ? 0 : args.content.split("\n").length - (args.content.endsWith("\n") ? 1 : 0);
      const verb = place.stats === null ? "Created" : "Replaced";
      return success(`${verb} "${displayPath(place.relative)}": ${pluralize(lines, "line")}, ${bytes} bytes.`);
    });
  },
});
