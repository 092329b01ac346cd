// The view of documents for one call: private documents are visible only in the owner's conversations. The store enforces the same
// by the call's grant, and derives the author of new text from it.
import { isPrivateDocument, WireError, type ToolCallRequest } from "@parley/contracts";
import type { Documents } from "./documents.ts";

export type DocumentView = Pick<Documents, "list" | "read" | "readAll" | "authors" | "write" | "edit">;

export type DocumentCaller = Pick<ToolCallRequest, "audience">;

export function viewFor(documents: Documents, { audience = "owner" }: DocumentCaller): DocumentView {
  const hides = (path: string) => audience === "others" && isPrivateDocument(path);
  const refuse = () => {
    if (audience === "owner") return;
    throw new WireError("INVALID_INPUT", "documents can be changed only in the owner's conversations");
  };
  return {
    list: async () => (await documents.list()).filter(({ path }) => !hides(path)),
    read: async (path) => (hides(path) ? null : documents.read(path)),
    readAll: (listed) => documents.readAll(listed.filter(({ path }) => !hides(path))),
    authors: (document) => documents.authors(document),
    async write(path, content, writer) {
      refuse();
      return documents.write(path, content, writer);
    },
    async edit(path, change) {
      refuse();
      return documents.edit(path, change);
    },
  };
}
