// The table of commands and roles: complete and consistent.
import { ownerAccess } from "../src/http/api-access.ts";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { contactRoles, slashCommands as commands } from "@parley/contracts";
import { propertyRuns } from "@parley/testing/property-runs";
import { ownerCaller } from "../src/http/owner-input.ts";
import type { OperationDeps } from "../src/operations/operation.ts";
import { callOperation, operations } from "../src/operations/registry.ts";
import { findForm, slashForms } from "../src/operations/slash.ts";
import { accessRefusal, accessRuleFor, accessRules } from "../src/operations/access.ts";
import { hasRole } from "../src/operations/operation.ts";
import { commandsDocument } from "../src/docs/commands-document.ts";

test("has a row for every command and every subcommand in its usage", () => {
  for (const { name, usage } of commands) {
    const rows = accessRules.filter((row) => row.command === name);
    assert.ok(rows.length > 0, name);
    const forms = rows.flatMap((row) => row.forms ?? []);
    assert.equal(new Set(forms).size, forms.length, `${name} has a duplicate form`);
    if (forms.length === 0) continue;
    assert.ok(forms.includes(""), `${name} has no row without arguments`);
    for (const [word] of usage.slice(name.length).matchAll(/(?<![<\w-])[a-z]+(?![\w>]*>)/g)) {
      if (
        [
          "n",
          "id",
          "text",
          "title",
          "mode",
          "microphone",
          "loopback",
          "device",
          "on",
          "off",
          "server",
          "tool",
          "dry",
        ].includes(word)
      )
        continue;
      assert.ok(
        forms.some((form) => form.split(" ").includes(word)),
        `${name} ${word} has no row`,
      );
    }
  }
});

test("requires the same roles of every operation with the same form", () => {
  const roles = new Map<string, string>();
  for (const { form, direct, group } of slashForms(operations).map(({ projection, operation }) => {
    const { role } = operation.definition;
    const { form, direct = role, group = direct } = projection;
    return { form, direct, group };
  })) {
    const required = `${direct} ${group}`;
    assert.equal(roles.get(form) ?? required, required, form);
    roles.set(form, required);
  }
});

test("property: requires at least the roles of the form that is executed", () => {
  const forms = slashForms(operations);
  const vocabulary = [...new Set(forms.flatMap(({ subcommand }) => subcommand)), "x", "7"];
  const names = [...new Set(forms.map(({ command }) => command))];
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.array(fc.constantFrom(...vocabulary), { maxLength: 3 }),
      (name, words) => {
        const found = findForm(forms, name, words);
        assert.ok(found !== undefined);
        const { role } = found.operation.definition;
        const { direct = role, group = direct } = found.projection;
        const rule = accessRuleFor(name, words);
        // Words that no form has may require more, never less.
        const isEnough = hasRole(rule.direct, direct) && hasRole(rule.group, group);
        assert.ok(isEnough, `${name} ${words.join(" ")}`);
      },
    ),
    { numRuns: propertyRuns(2_000) },
  );
});

test("refuses a caller of an operation who has a lower role", async () => {
  const operation = operations.find(({ definition }) => definition.name === "mcp.list");
  assert.ok(operation !== undefined);
  const { speaker, by } = ownerCaller(ownerAccess, "API", "ref");
  const guest = { speaker: { ...speaker, role: "guest" as const }, by };
  await assert.rejects(callOperation({} as OperationDeps, operation, {}, guest), { code: "forbidden", status: 403 });
});

test("names only commands that exist", () => {
  const names = new Set([...commands.map(({ name }) => name), "/mcp__<server>__<prompt>"]);
  for (const { command } of accessRules) assert.ok(names.has(command), command);
});

test("refuses nothing to the owner and never less to a lower role", () => {
  const words = fc.array(fc.constantFrom("all", "list", "new", "name", "mode", "replies", "on", "X", "dance"), {
    maxLength: 3,
  });
  fc.assert(
    fc.property(fc.constantFrom(...commands), words, fc.boolean(), ({ name }, typed, direct) => {
      assert.equal(accessRefusal(name, typed, { role: "owner", direct }), undefined);
      const allowed = contactRoles.filter((role) => accessRefusal(name, typed, { role, direct }) === undefined);
      for (const role of allowed) {
        for (const other of contactRoles)
          assert.ok(!hasRole(other, role) || allowed.includes(other), `${name} ${other}`);
      }
      // A group never allows more than the direct conversation.
      for (const role of contactRoles) {
        if (accessRefusal(name, typed, { role, direct: true }) === undefined) continue;
        assert.notEqual(accessRefusal(name, typed, { role, direct: false }), undefined);
      }
    }),
  );
});

test("applies the strictest role to a form without a row and a command without rows", () => {
  assert.equal(accessRuleFor("/session", ["dance"]).group, "owner");
  assert.equal(accessRuleFor("/nothing", []).direct, "owner");
  assert.equal(accessRuleFor("/mcp__notes__greet", ["x"]).direct, "owner");
  assert.equal(accessRuleFor("/voice", ["replies", "ON"]).direct, "owner");
});

test("docs/commands.md matches the generated page", async () => {
  const page = await readFile(new URL("../../../docs/commands.md", import.meta.url), "utf8");
  assert.equal(page, commandsDocument(), "stale: run npm run docs");
});
