// How tools change a text that stands somewhere, a file of the workspace or a document of the store: read it, decide, check the room, keep
// what was there, write. What becomes of the text is the tool's affair.
import { documentAt } from "../documents/access.ts";
import type { Edited } from "../documents/documents.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool.ts";
import { whileLocked } from "../workspace/locks.ts";
import { shown } from "../workspace/paths.ts";
import { replaceFile } from "../workspace/replace.ts";
import { openFile } from "../workspace/workspace.ts";
import { decodeText } from "./binary.ts";
import { editDocument } from "./document-files.ts";

interface ChangeOfText {
  /** Larger files are refused with what `tooLarge` says. */
  maxBytes: number;
  tooLarge: (name: string, bytes: number) => string;
  /** The answer names what stands in the text. */
  quotes: boolean;
  /** Decides; may be asked again where somebody else has written meanwhile. `name`: what the file is called in the answer. */
  change: (text: string, name: string) => Promise<Edited<ToolOutput>>;
}

/** Throws WorkspaceError for what is no file of the workspace. */
export async function changeText(path: string, how: ChangeOfText, context: ToolContext): Promise<ToolOutput> {
  const document = documentAt(path, context);
  if (document !== undefined) {
    const change = (text: string) => how.change(text, document.path);
    return editDocument(document, { change, quotes: how.quotes });
  }
  return whileLocked(context.workspace, [path], context, () => changeFile(path, how, context));
}

async function changeFile(path: string, { maxBytes, tooLarge, change }: ChangeOfText, context: ToolContext) {
  await using place = await context.workspace.resolve(path);
  const name = shown(place.relative);
  const { handle, stats } = await openFile(place);
  let bytes: Buffer;
  try {
    if (stats.size > maxBytes) return failure(tooLarge(name, stats.size));
    bytes = await handle.readFile();
  } finally {
    await handle.close();
  }
  const text = decodeText(bytes);
  if (text === undefined) return failure(`"${name}" is not a UTF-8 text file; it was left as it is.`);
  const changed = await change(text, name);
  if (changed.text !== undefined) {
    await context.workspace.room.admit(Buffer.byteLength(changed.text), stats.size);
    await context.checkpoint.track([place.relative]);
    await replaceFile(place, changed.text);
  }
  return changed.answer;
}
