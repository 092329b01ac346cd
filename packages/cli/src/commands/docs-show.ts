// `parley docs show`: prints one document, byte for byte unless to a terminal; with --authors, the author of each line.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { fetchAuthored, fetchDocument, type AuthoredDocument } from "../docs/answers.ts";
import { givenPath, givenVersion } from "../docs/arguments.ts";
import { authoredNote, authoredText } from "../docs/vouching.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, painter, printJson, type Io } from "../io.ts";
import { stripControl } from "../text.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = givenPath(positionals);
  const version = givenVersion(values, "at");
  const gateway = new Gateway(findTarget(values, io));
  if (values.has("authors")) {
    const document = await fetchAuthored(gateway, path, version);
    if (values.has("json")) printJson(io, document);
    else showAuthors(document, version === undefined, io);
    return exitCodes.ok;
  }
  const document = await fetchDocument(gateway, path, version);
  if (values.has("json")) printJson(io, document);
  else io.stdout.write(io.stdout.isTTY ? stripControl(document.content) : document.content);
  return exitCodes.ok;
};

function showAuthors(document: AuthoredDocument, isNewest: boolean, io: Io): void {
  io.stdout.write(authoredText(document, painter(io.stdout, io.env)));
  if (isNewest) note(io, authoredNote(document));
}
