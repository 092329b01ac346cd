// The three steps of an upload: a URL, the bytes, and sharing the file in a conversation.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { closedBecause, done, json, refused, type Method } from "./results.ts";
import { notifiedBy, renderMrkdwn } from "./rendering.ts";

const maxFileBytes = 1024 ** 3;
const GetUrl = z.object({ filename: z.string().min(1), length: z.coerce.number().int().positive().max(maxFileBytes) });
const Complete = z.object({
  files: json(
    z
      .array(z.object({ id: z.string(), title: z.string().optional() }))
      .min(1)
      .max(10),
  ),
  channel_id: z.string().optional(),
  thread_ts: z.string().optional(),
  initial_comment: z.string().optional(),
});

export const fileMethods: Readonly<Record<string, Method>> = {
  "files.getUploadURLExternal": (parameters, state) => {
    const given = GetUrl.safeParse(parameters);
    if (!given.success) return refused("invalid_arguments");
    const { filename: name, length } = given.data;
    const id = `F${randomUUID().replaceAll("-", "").slice(0, 10).toUpperCase()}`;
    state.uploads.set(id, { name, length, content: null });
    // The server replaces the path by an address of its own.
    return done({ upload_url: `/upload/${id}`, file_id: id });
  },
  "files.completeUploadExternal": (parameters, state) => {
    const given = Complete.safeParse(parameters);
    if (!given.success) return refused("invalid_arguments");
    const { files, channel_id: channel, thread_ts: threadTs, initial_comment: comment = "" } = given.data;
    const uploaded = files.map(({ id, title }) => {
      const found = state.uploads.get(id);
      return { id, name: found?.name ?? "", title: title ?? found?.name ?? "", content: found?.content ?? null };
    });
    if (uploaded.some(({ content }) => content === null)) return refused("file_not_found");
    if (channel !== undefined) {
      const closed = closedBecause(channel, threadTs, state);
      if (closed !== null) return refused(closed);
      state.sent.push({
        channel,
        ts: state.nextTs(),
        threadTs: threadTs ?? null,
        text: renderMrkdwn(comment),
        fallback: comment,
        blocks: [],
        buttons: [],
        files: uploaded.map(({ name, title, content }) => ({ name, title, content: content ?? Buffer.alloc(0) })),
        notified: notifiedBy(comment),
        onlyFor: null,
        postedText: renderMrkdwn(comment),
        edits: 0,
        deleted: false,
      });
    }
    for (const { id } of files) state.uploads.delete(id);
    state.changed();
    return done({ files: uploaded.map(({ id, title }) => ({ id, title })) });
  },
};
