// What a server that listens answers, as far as it is understood. Pure. What cannot be read throws: a server that talks nonsense counts
// as one that fails.
import { maxHeardCharacters, type Heard } from "@parley/contracts";
import { z } from "zod";

const Started = z.looseObject({ session_id: z.union([z.string().min(1).max(500), z.number().transform(String)]) });

const Event = z.looseObject({
  seq: z.coerce.number().int().nonnegative(),
  type: z.string(),
  text: z.string().nullish(),
});

const Updates = z.looseObject({
  events: z.array(Event).nullish(),
  /** Of the session, where the server says it. */
  status: z.string().nullish(),
});

/** A session that is in one of these hears nothing any more. */
const over = new Set(["stopped", "failed", "error", "ended", "closed"]);

const maxType = 64;

/** The server's id of the session it has begun. Throws where it says none. */
export function startedSession(value: Record<string, unknown>): string {
  const parsed = Started.safeParse(value);
  if (parsed.success) return parsed.data.session_id;
  throw new Error("the server has named no session_id");
}

export interface Page {
  /** Those after the cursor, in their order. */
  events: Heard[];
  /** The page is as long as it may be: more may follow at once. */
  full: boolean;
  /** Why nothing more will come; null: more may. */
  ended: string | null;
}

export function pageOf(value: Record<string, unknown>, sinceSeq: number, limit: number): Page {
  const parsed = Updates.safeParse(value);
  if (!parsed.success) throw new Error("the server's events cannot be read");
  const all = parsed.data.events ?? [];
  const events = all
    .filter(({ seq }) => seq > sinceSeq)
    .map(({ seq, type, text }) => ({
      seq,
      type: type.slice(0, maxType),
      text: (text ?? "").slice(0, maxHeardCharacters).toWellFormed(),
    }))
    .sort((a, b) => a.seq - b.seq)
    // More than was asked for is had with the next page.
    .slice(0, limit);
  const status = parsed.data.status?.toLowerCase() ?? "";
  const ended = events.length === 0 && over.has(status) ? `the server says that its session is ${status}` : null;
  return { events, full: events.length > 0 && all.length >= limit, ended };
}

const Devices = z.looseObject({ devices: z.array(z.looseObject({})).optional() });
const Device = z.looseObject({
  id: z.union([z.string(), z.number()]).optional(),
  device_id: z.union([z.string(), z.number()]).optional(),
  name: z.string().optional(),
});

export interface Device {
  id: string | null;
  name: string | null;
}

/** Devices with an id or a name, from whichever list of the answer holds them. */
export function devicesOf(value: Record<string, unknown>): Device[] {
  const parsed = Devices.safeParse(value);
  const listed = parsed.success ? (parsed.data.devices ?? Object.values(value).flat()) : [];
  return listed.flatMap((each) => {
    const device = Device.safeParse(each);
    if (!device.success) return [];
    const id = device.data.id ?? device.data.device_id;
    const found = { id: id === undefined ? null : String(id), name: device.data.name ?? null };
    return found.id === null && found.name === null ? [] : [found];
  });
}

/** What the server is told of the source: a device is a microphone by its id where it is listed, else by its name. */
export function sourceArguments(source: string, devices: readonly Device[]): Record<string, string> {
  if (source === "microphone" || source === "loopback") return { source };
  const wanted = source.toLowerCase();
  const device = devices.find(({ id, name }) => id?.toLowerCase() === wanted || name?.toLowerCase() === wanted);
  return {
    source: "microphone",
    ...(device?.id === undefined || device.id === null ? {} : { mic_device_id: device.id }),
    ...(device === undefined ? { mic_device_name: source } : {}),
    ...(device?.name === undefined || device.name === null ? {} : { mic_device_name: device.name }),
  };
}
