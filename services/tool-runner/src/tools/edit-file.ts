// Changes a text, a workspace file or a document in the store: read, let the tool decide, check the quota, record a checkpoint, write.
// It does not know what the tools change.
import { resolveDocument } from "./document-access.ts";
import type { Edited } from "../documents/documents.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { whileLocked } from "../workspace/locks.ts";
import { displayPath } from "../workspace/paths.ts";
import { replaceFile } from "../workspace/replace.ts";
import { openFile } from "../workspace/directory-handles.ts";
import { decodeText } from "../text/file-kind.ts";
import { editDocument } from "./document-files.ts";

interface ChangeOfText {
  /** Larger files are refused with the text from `tooLarge`. */
  maxBytes: number;
  tooLarge: (name: string, bytes: number) => string;
  /** The answer quotes parts of the text. */
  quotes: boolean;
  /** Computes the new text; called again after a concurrent write. `name`: the file's name in the answer. */
  change: (text: string, name: string) => Promise<Edited<ToolOutput>>;
}

/** Throws WorkspaceError when the path is not a file in the workspace. */
export async function editText(path: string, how: ChangeOfText, context: ToolContext): Promise<ToolOutput> {
  const document = resolveDocument(path, context);
  if (document !== undefined) {
    const change = (text: string) => how.change(text, document.path);
    return editDocument(document, { change, quotes: how.quotes });
  }
  return whileLocked(context.workspace, [path], context, () => changeFile(path, how, context));
}

async function changeFile(path: string, { maxBytes, tooLarge, change }: ChangeOfText, context: ToolContext) {
  await using place = await context.workspace.resolve(path);
  const name = displayPath(place.relative);
  await using file = await openFile(place);
  const { handle, stats } = file;
  if (stats.size > maxBytes) return failure(tooLarge(name, stats.size));
  const text = decodeText(await handle.readFile());
  if (text === undefined) return failure(`"${name}" is not a UTF-8 text file; it was not changed.`);
  const changed = await change(text, name);
  if (changed.text !== undefined) {
    await context.workspace.quota.reserve(Buffer.byteLength(changed.text), stats.size);
    await context.checkpoint.track([place.relative]);
    await replaceFile(place, changed.text);
  }
  return changed.answer;
}
