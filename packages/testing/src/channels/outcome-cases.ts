// Cases about what an adapter tells the host of a send: the host repeats, drops or waits because of it.
import assert from "node:assert/strict";
import { seenAfter, type ChannelSubject, type ConformanceCase } from "./subject.ts";

/** Sends a file; the person has seen it when it came with a text. */
async function sendFile(subject: ChannelSubject, name: string): Promise<void> {
  const before = (await subject.seen(0)).length;
  const outcome = await subject.sendFile(name, Buffer.from("content"));
  assert.equal(outcome.state, "sent", outcome.reason);
  if (subject.capabilities.filesWithText) await subject.seen(before + 1);
}

export const outcomeCases: readonly ConformanceCase[] = [
  {
    group: "outcome",
    name: "sends nothing when it is cancelled before the send",
    run: async (subject) => {
      const before = (await subject.seen(0)).length;
      const [outcome] = await subject.send("never", { signal: AbortSignal.abort() });
      assert.equal(outcome?.state, "retry");
      assert.equal((await subject.seen(0)).length, before);
    },
  },
  {
    group: "outcome",
    name: "gives a reason and a pause when it must be sent again",
    run: async (subject) => {
      const [outcome] = await subject.send("never", { signal: AbortSignal.abort() });
      assert.ok((outcome?.afterMs ?? 0) >= 0 && (outcome?.reason ?? "") !== "");
    },
  },
  {
    group: "outcome",
    name: "sends again after a message that was dropped",
    run: async (subject) => {
      await subject.sendNowhere("hello");
      assert.equal((await seenAfter(subject, "after the drop")).length, 1);
    },
  },
  {
    group: "outcome",
    name: "sends two answers in their order",
    run: async (subject) => {
      const before = (await subject.seen(0)).length;
      for (const text of ["first answer", "second answer"]) assert.equal((await subject.send(text))[0]?.state, "sent");
      const texts = (await subject.seen(before + 2)).slice(before).map(({ text }) => text.trim());
      assert.deepEqual(texts, ["first answer", "second answer"]);
    },
  },
  {
    group: "outcome",
    name: "drops a message to a conversation that cannot exist",
    run: async (subject) => assert.equal((await subject.sendNowhere("hello")).state, "dropped"),
  },
  {
    group: "outcome",
    name: "says why it drops a message, without a secret",
    run: async (subject) => {
      const { reason = "" } = await subject.sendNowhere("hello");
      assert.notEqual(reason, "");
      for (const secret of subject.secrets) assert.ok(!reason.includes(secret));
    },
  },
  {
    group: "outcome",
    name: "shows a repeated message once where the platform drops repetitions",
    run: async (subject) => {
      if (!subject.capabilities.supportsIdempotentSend) return;
      const before = (await subject.seen(0)).length;
      for (let attempt = 0; attempt < 2; attempt++) {
        const [outcome] = await subject.send("only once", { key: "repeated-key" });
        assert.equal(outcome?.state, "sent", outcome?.reason);
      }
      assert.equal((await subject.send("and then"))[0]?.state, "sent");
      const texts = (await subject.seen(before + 2)).slice(before).map(({ text }) => text.trim());
      assert.deepEqual(texts, ["only once", "and then"]);
    },
  },
  {
    group: "outcome",
    name: "gives two messages different ids",
    run: async (subject) => {
      const before = (await subject.seen(0)).length;
      const outcomes = (await Promise.all(["one of two", "two of two"].map((text) => subject.send(text)))).flat();
      for (const { state, reason } of outcomes) assert.equal(state, "sent", reason);
      const known = outcomes.map(({ providerMessageId: id }) => id ?? null).filter((id) => id !== null);
      assert.equal(new Set(known).size, known.length);
      await subject.seen(before + 2);
    },
  },
  {
    group: "outcome",
    name: "gives the id of a message that it can edit or delete",
    run: async (subject) => {
      if (subject.edit === undefined && subject.remove === undefined) return;
      const before = (await subject.seen(0)).length;
      const [outcome] = await subject.send("with an id");
      await subject.seen(before + 1);
      assert.ok((outcome?.providerMessageId ?? "") !== "");
    },
  },
  {
    group: "outcome",
    name: "sends a file where the channel sends files",
    run: async (subject) => {
      if (!subject.capabilities.files) return;
      await sendFile(subject, "notes.txt");
    },
  },
  {
    group: "outcome",
    name: "sends a file whose name has quotes, line breaks and path signs",
    run: async (subject) => {
      if (!subject.capabilities.files) return;
      await sendFile(subject, `../a "b"\r\nX-Header: ä漢.txt`);
    },
  },
  {
    group: "outcome",
    name: "sends texts after a file",
    run: async (subject) => {
      const texts = (await seenAfter(subject, "after the file")).map(({ text }) => text.trim());
      assert.deepEqual(texts, ["after the file"]);
    },
  },
];
