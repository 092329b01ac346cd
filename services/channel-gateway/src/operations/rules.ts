// The permission rules of one session: list, add and remove them.
import {
  operations,
  ruleLists,
  store,
  type InputOf,
  type OperationOutput,
  type RuleList,
  type SessionOverrides,
} from "@parley/contracts";
import { implement, OperationError, type OperationCall } from "./operation.ts";
import { existing } from "./session-service.ts";

type RulesView = OperationOutput<typeof operations.rulesList>;
type Change = NonNullable<InputOf<typeof store.sessionUpdate>["rules"]>;

function viewOf({ deps }: OperationCall, overrides: SessionOverrides): RulesView {
  const { allow, ask, deny } = deps.settings.permissions;
  const listOf = (list: RuleList) => [list, overrides[list] ?? []] as const;
  return {
    session: Object.fromEntries(ruleLists.map(listOf)) as Record<RuleList, string[]>,
    settings: { allow: [...allow], ask: [...ask], deny: [...deny] },
  };
}

async function change(call: OperationCall, sessionId: string, rules: Change): Promise<SessionOverrides> {
  const { deps } = call;
  const opId = call.operationId(`rules:${sessionId}:${JSON.stringify(rules)}`);
  const { session } = await deps.bus.request(store.sessionUpdate, { opId, sessionId, rules });
  deps.sessions.changed(sessionId);
  return existing(session, sessionId).overrides;
}

const titles: Readonly<Record<RuleList, string>> = {
  allow: "Allowed",
  allowTainted: "Allowed, also after untrusted content was read",
  ask: "Require approval",
  deny: "Denied",
};

function rulesText({ session, settings }: RulesView): string {
  const own = ruleLists.flatMap((list) => session[list].map((rule) => `${titles[list]}: ${rule}`));
  const shared = (["allow", "ask", "deny"] as const).flatMap((list) =>
    settings[list].map((rule) => `${titles[list]}: ${rule}`),
  );
  return [
    own.length === 0 ? "This session has no rules of its own." : "Rules of this session:",
    ...own,
    shared.length === 0 ? "The settings have no rules." : "Rules of the settings:",
    ...shared,
    ...(own.length === 0 ? [] : ["/rules remove <rule> removes a rule of this session."]),
  ].join("\n");
}

export const rulesOperations = [
  implement(
    operations.rulesList,
    async ({ id }, call) => viewOf(call, (await call.ensureSession(id)).overrides),
    rulesText,
  ),

  implement(
    operations.rulesAdd,
    async ({ id, list, rules }, call) => {
      const { sessionId } = await call.ensureSession(id);
      return viewOf(call, await change(call, sessionId, { action: "add", list, rules }));
    },
    rulesText,
  ),

  implement(
    operations.rulesRemove,
    async ({ id, list, rules }, call) => {
      const { sessionId, overrides } = await call.session(id);
      const lists = (list === undefined ? ruleLists : [list]).filter((each) =>
        overrides[each]?.some((rule) => rules.includes(rule)),
      );
      if (lists.length === 0) {
        throw new OperationError("not_found", `this session has no rule ${rules.join(", ")}; /rules lists its rules`);
      }
      let changed = overrides;
      for (const each of lists) changed = await change(call, sessionId, { action: "remove", list: each, rules });
      return viewOf(call, changed);
    },
    rulesText,
  ),
];
