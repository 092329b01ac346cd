// Cases about what an adapter does in addition to sending: buttons, edits, deletions, reactions, the typing indicator, and its account.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { seenAfter, type ChannelSubject, type ConformanceCase, type Outcome } from "./subject.ts";
import { words } from "./split-cases.ts";

async function sentId(subject: ChannelSubject, text: string): Promise<string> {
  const before = (await subject.seen(0)).length;
  const [outcome] = await subject.send(text);
  await subject.seen(before + 1);
  return outcome?.providerMessageId ?? "";
}

function operation(name: string, run: ConformanceCase["run"]): ConformanceCase {
  return { group: "operations", name, run };
}

export const operationCases: readonly ConformanceCase[] = [
  {
    group: "actions",
    name: "shows several buttons in their order",
    run: async (subject) => {
      if (!subject.capabilities.actions) return;
      const labels = ["Allow", "Always allow", "Deny"];
      const actions = labels.map((label, index) => ({ label, input: `/choice ${index}` }));
      const [message] = await seenAfter(subject, "Which one?", { actions });
      assert.deepEqual(message?.buttons, labels);
    },
  },
  // After the other one: a channel may answer a press with a message.
  {
    group: "actions",
    name: "shows buttons with the last message of an answer and delivers the input of a press",
    run: async (subject) => {
      if (!subject.capabilities.actions || subject.press === undefined) return;
      const actions = [{ label: "Approve", input: "/approve AB12C" }];
      const messages = await seenAfter(subject, `${words(2_000)} ?`, { actions });
      assert.deepEqual(
        messages.map(({ buttons }) => buttons.length),
        messages.map((_, index) => (index === messages.length - 1 ? 1 : 0)),
      );
      assert.equal(await subject.press("Approve"), "/approve AB12C");
    },
  },
  operation("can edit messages if it shows previews", async (subject) =>
    assert.ok(subject.capabilities.preview === undefined || subject.edit !== undefined),
  ),
  operation("can react to messages if it names a reaction", async (subject) =>
    assert.ok(subject.capabilities.acknowledgement === undefined || subject.react !== undefined),
  ),
  operation("has a typing indicator if it says so", async (subject) =>
    assert.equal(subject.typing !== undefined, subject.capabilities.typing),
  ),
  operation("edits a message, also twice with the same text", async (subject) => {
    if (subject.edit === undefined) return;
    const id = await sentId(subject, "before the edit");
    for (let time = 0; time < 2; time++) {
      const outcome: Outcome = await subject.edit(id, "after the edit");
      assert.equal(outcome.state, "sent", outcome.reason);
    }
  }),
  operation("edits nothing when it is cancelled", async (subject) => {
    if (subject.edit === undefined) return;
    const id = await sentId(subject, "stays as it is");
    assert.equal((await subject.edit(id, "never", AbortSignal.abort())).state, "retry");
  }),
  operation("deletes a message, also one that is deleted", async (subject) => {
    if (subject.remove === undefined) return;
    const id = await sentId(subject, "to be deleted");
    for (let time = 0; time < 2; time++) {
      const outcome: Outcome = await subject.remove(id);
      assert.equal(outcome.state, "sent", outcome.reason);
    }
  }),
  operation("sends after an edit and a deletion", async (subject) => {
    await seenAfter(subject, "still here");
  }),
  operation("reacts to a received message and removes the reaction", async (subject) => {
    const { acknowledgement } = subject.capabilities;
    if (subject.react === undefined || acknowledgement === undefined) return;
    const { externalId, messageId = externalId } = await subject.say("react to this");
    for (const reaction of [acknowledgement, acknowledgement, null]) {
      let outcome: Outcome = await subject.react(messageId, reaction);
      // Some platforms limit reactions to a few a second.
      while (outcome.state === "retry") {
        await delay(outcome.afterMs);
        outcome = await subject.react(messageId, reaction);
      }
      assert.equal(outcome.state, "sent", outcome.reason);
    }
  }),
  operation("shows and hides the typing indicator, also twice", async (subject) => {
    if (subject.typing === undefined) return;
    await subject.say("about to be answered");
    await subject.typing();
    await subject.typing();
    await subject.stopTyping?.();
    await subject.stopTyping?.();
  }),
  {
    group: "account",
    name: "names its account on the platform",
    run: async (subject) => {
      if (subject.check !== undefined) assert.notEqual(await subject.check(), "");
    },
  },
  {
    group: "account",
    name: "declares limits that a host can keep",
    run: async ({ limits, capabilities: { rates, preview, typingEveryMs = 1, sendTimeoutMs = 1 } }) => {
      assert.ok(limits.maxLength > 0 && typingEveryMs > 0 && sendTimeoutMs > 0 && sendTimeoutMs <= 20_000);
      assert.ok(preview === undefined || preview.everyMs > 0);
      for (const { burst, everyMs } of [...(rates?.conversations ?? []), ...(rates?.account ? [rates.account] : [])])
        assert.ok(burst > 0 && everyMs > 0);
      for (const { pattern } of rates?.conversations ?? []) assert.doesNotThrow(() => new RegExp(pattern));
    },
  },
  {
    group: "account",
    name: "logs no secret and no text of a message",
    run: async (subject) => {
      await subject.say("a private sentence");
      await seenAfter(subject, "a private answer");
      const logged = subject.logText();
      for (const hidden of [...subject.secrets, "a private sentence", "a private answer"])
        assert.ok(hidden === "" || !logged.includes(hidden), `${hidden} is in the log`);
    },
  },
];
