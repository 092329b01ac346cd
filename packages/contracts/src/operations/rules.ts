// Operations on the permission rules of one session.
import { z } from "zod";
import { permissionRule, ruleLists } from "../settings/permissions.ts";
import { sameChange, SessionRef } from "./fields.ts";
import { operation } from "./operation.ts";

const one = (rule: z.ZodType<string>) => z.union([rule.transform((text) => [text]), z.array(rule).min(1).max(100)]);

/** The rules of each list; a list without rules is empty. */
const Rules = z.object({
  session: z.record(z.enum(ruleLists), z.array(z.string())),
  /** The rules of the settings, which apply to every session. */
  settings: z.object({ allow: z.array(z.string()), ask: z.array(z.string()), deny: z.array(z.string()) }),
});

export const rulesList = operation({
  name: "rules.list",
  summary: "The permission rules of a session and of the settings",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef }),
  output: Rules,
  http: { method: "GET", path: "/api/sessions/:id/rules", answers: { 200: "The rules" } },
  slash: [{ form: "/rules" }, { form: "/rules list" }],
  ws: [{ subtype: "list_rules", input: z.strictObject({}) }],
});

/** `allowTainted` has only rules of approvals: they can be removed, not added. */
const addable = z.enum(["allow", "ask", "deny"]);

export const rulesAdd = operation({
  name: "rules.add",
  summary: "Add permission rules to a session; they apply from the next model call",
  role: "owner",
  audit: ["id", "list", "rules"],
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    list: addable,
    /** Rules such as `exec(git status)`. */
    rules: one(permissionRule),
  }),
  output: Rules,
  http: {
    method: "POST",
    path: "/api/sessions/:id/rules",
    answers: { 200: "The rules after the change" },
    key: sameChange,
  },
  slash: [{ form: "/rules add", arguments: [{ field: "list" }, { field: "rules", label: "rule", rest: true }] }],
  ws: [{ subtype: "add_rules", input: z.strictObject({ list: addable, rules: one(permissionRule) }) }],
});

export const rulesRemove = operation({
  name: "rules.remove",
  summary: "Remove permission rules from a session, such as those that an approval for always added",
  role: "owner",
  audit: ["id", "list", "rules"],
  session: "id",
  input: z.strictObject({
    id: SessionRef,
    /** Omitted: from all lists. */
    list: z.enum(ruleLists).optional(),
    rules: one(z.string().min(1).max(2_000)),
  }),
  output: Rules,
  http: {
    method: "POST",
    path: "/api/sessions/:id/rules/remove",
    answers: { 200: "The rules after the change", 404: "The session has none of these rules" },
    key: sameChange,
  },
  slash: [{ form: "/rules remove", arguments: [{ field: "rules", label: "rule", rest: true }] }],
  ws: [
    {
      subtype: "remove_rules",
      input: z.strictObject({ list: z.enum(ruleLists).optional(), rules: one(z.string().min(1).max(2_000)) }),
    },
  ],
});
