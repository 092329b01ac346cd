// Attempts of other people's conversations to read or change what the agent remembers about its owner.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { store, type ToolClass } from "@parley/contracts";
import { attempt } from "./ledger.ts";
import { canary, type EscapeFixture } from "./fixture.ts";

const documents = ["MEMORY.md", "USER.md", "HEARTBEAT.md", "memory/owner.md"];
const spellings: Record<string, (path: string) => string> = {
  "its path": (path) => path,
  "a path with dots": (path) => `./folder/.././${path}`,
  "the sandbox's path": (path) => `/workspace//${path}`,
  "a path through a folder of documents": (path) => `skills/../${path}`,
  "other letter case": (path) => path.toUpperCase().replace(/MD$/, "md"),
  "a slash or dot after it": (path) => `${path}/.`,
  "a link on disk": (path) => `link-${path.replaceAll(/\W/g, "-")}`,
};

export function documentAttempts(fixture: () => EscapeFixture): void {
  const guest = (tool: string, toolClass: ToolClass, input: unknown) =>
    fixture().call(tool, toolClass, input, { audience: "others" });
  const stored = async (path: string) => (await fixture().gateway.request(store.documentGet, { path })).document;
  const put = async () => {
    for (const path of documents) {
      const content = `${canary} of ${path}\n`;
      await fixture().gateway.request(store.documentPut, { opId: randomUUID(), path, content, author: "owner" });
    }
  };
  const unchanged = async () => {
    for (const path of documents) assert.equal((await stored(path))?.content, `${canary} of ${path}\n`, path);
  };

  for (const [how, spell] of Object.entries(spellings)) {
    attempt(`a guest reads the owner's documents by ${how}, with every tool`, "the tools", async () => {
      await put();
      assert.ok(
        (await fixture().call("read", "pure", { path: "MEMORY.md" })).includes(canary),
        "the owner can read it",
      );
      for (const document of documents) {
        const path = spell(document);
        if (how === "a link on disk") await symlink(document, join(fixture().workspace, path));
        const answers = [
          await guest("read", "pure", { path }),
          await guest("grep", "pure", { path, pattern: "." }),
          await guest("glob", "pure", { path, pattern: "**" }),
          await guest("ls", "pure", { path }),
          await guest("attach", "idempotent", { path }),
          await guest("edit", "once", { path, old_text: "no such passage", new_text: "x" }),
          await guest("notebook_edit", "once", { path, cell_number: 1, edit_mode: "delete" }),
          await guest("apply_patch", "once", {
            patch: `*** Begin Patch\n*** Update File: ${path}\n@@\n-no such line\n+x\n*** End Patch`,
          }),
        ];
        for (const answer of answers) assert.ok(!answer.includes(canary), answer);
      }
      await unchanged();
    });
  }

  attempt("a guest finds the owner's documents by searching everywhere", "the tools", async () => {
    await put();
    const answers = [
      await guest("grep", "pure", { pattern: "canary" }),
      await guest("grep", "pure", { pattern: "canary", path: "memory" }),
      await guest("grep", "pure", { pattern: "canary", path: "." }),
      await guest("glob", "pure", { pattern: "**/*.md" }),
      await guest("ls", "pure", {}),
      await guest("ls", "pure", { path: "memory" }),
    ];
    for (const answer of answers)
      assert.ok(!answer.includes(canary) && !/^(file.*)?memory\/owner\.md/m.test(answer), answer);
  });

  attempt("a guest changes or removes the owner's documents", "the tools", async () => {
    await put();
    for (const path of documents) {
      await guest("write", "idempotent", { path, content: "escaped" });
      await guest("edit", "once", { path, old_text: canary, new_text: "escaped" });
      await guest("apply_patch", "once", { patch: `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch` });
      await guest("save_attachment", "idempotent", { path, id: "0".repeat(64) });
      await guest("exec", "once", { command: `echo escaped > ${path}; rm -f ${path}` });
    }
    await unchanged();
  });

  attempt("a guest writes new memories or skills", "the tools", async () => {
    for (const path of ["memory/planted.md", "skills/planted/SKILL.md", "SOUL.md"]) {
      const before = await stored(path);
      await guest("write", "idempotent", { path, content: "---\nname: planted\n---\n" });
      assert.deepEqual(await stored(path), before);
    }
  });
}
