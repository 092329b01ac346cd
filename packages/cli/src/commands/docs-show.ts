// `parley docs show`: the text of one document, byte for byte where it does not go to a terminal.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { fetchDocument } from "../docs/answers.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { printJson } from "../io.ts";
import { harmless } from "../text.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [path] = positionals;
  if (path === undefined) throw new UsageError("Which document? parley docs list shows them.");
  const version = values.text("at");
  if (version !== undefined && !/^[1-9]\d{0,8}$/.test(version))
    throw new UsageError(`--at: "${version}" is no version; parley docs history shows them.`);
  const document = await fetchDocument(new Gateway(findTarget(values, io)), path, version);
  if (values.has("json")) printJson(io, document);
  else io.stdout.write(io.stdout.isTTY ? harmless(document.content) : document.content);
  return exitCodes.ok;
};
