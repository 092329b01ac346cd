// The documents as one call may see and change them: what the agent remembers of its owner is for the owner's conversations, and
// what is written after reading what outsiders wrote says so.
import { isPrivateDocument, WireError, type ToolCallRequest } from "@parley/contracts";
import type { Documents } from "./documents.ts";

export type DocumentView = Pick<Documents, "list" | "read" | "readAll" | "authors" | "write" | "edit">;

export type DocumentCaller = Pick<ToolCallRequest, "audience" | "tainted">;

export function seenBy(documents: Documents, { audience = "owner", tainted = false }: DocumentCaller): DocumentView {
  const author = tainted ? ("untrusted" as const) : ("agent" as const);
  const hides = (path: string) => audience === "others" && isPrivateDocument(path);
  const refuse = () => {
    if (audience === "owner") return;
    throw new WireError("INVALID_INPUT", "documents are changed in the owner's conversations only");
  };
  return {
    list: async () => (await documents.list()).filter(({ path }) => !hides(path)),
    read: async (path) => (hides(path) ? null : documents.read(path)),
    readAll: (listed) => documents.readAll(listed.filter(({ path }) => !hides(path))),
    authors: (document) => documents.authors(document),
    async write(path, content, writer) {
      refuse();
      return documents.write(path, content, { ...writer, author });
    },
    async edit(path, change, writer) {
      refuse();
      return documents.edit(path, change, { ...writer, author });
    },
  };
}
