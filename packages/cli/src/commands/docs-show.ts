// `parley docs show`: the text of one document, byte for byte where it does not go to a terminal.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { fetchDocument } from "../docs/answers.ts";
import { givenPath, givenVersion } from "../docs/arguments.ts";
import { exitCodes } from "../exit-codes.ts";
import { printJson } from "../io.ts";
import { harmless } from "../text.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = givenPath(positionals);
  const version = givenVersion(values, "at");
  const document = await fetchDocument(new Gateway(findTarget(values, io)), path, version);
  if (values.has("json")) printJson(io, document);
  else io.stdout.write(io.stdout.isTTY ? harmless(document.content) : document.content);
  return exitCodes.ok;
};
