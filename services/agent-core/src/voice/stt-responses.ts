// Parses responses of speech-to-text servers. Pure. Throws for invalid responses, which count as failures of the server.
import { maxUtteranceCharacters, type Utterance } from "@parley/contracts";
import { z } from "zod";

const Started = z.looseObject({ session_id: z.union([z.string().min(1).max(500), z.number().transform(String)]) });

const Event = z.looseObject({
  seq: z.coerce.number().int().nonnegative(),
  type: z.string(),
  text: z.string().nullish(),
});

const Updates = z.looseObject({
  events: z.array(Event).nullish(),
  /** Status of the session, if the server reports it. */
  status: z.string().nullish(),
});

/** Final states of a session. */
const over = new Set(["stopped", "failed", "error", "ended", "closed"]);

const maxType = 64;

/** The server's id of the started session. Throws if the response contains none. */
export function startedSession(value: Record<string, unknown>): string {
  const parsed = Started.safeParse(value);
  if (parsed.success) return parsed.data.session_id;
  throw new Error("the server returned no session_id");
}

export interface UpdatePage {
  /** The events after the cursor, in order. */
  events: Utterance[];
  /** Whether the page has the maximum length, so that more events may be available now. */
  full: boolean;
  /** Why no further events will follow; null if they may. */
  ended: string | null;
}

export function parseUpdatePage(value: Record<string, unknown>, sinceSeq: number, limit: number): UpdatePage {
  const parsed = Updates.safeParse(value);
  if (!parsed.success) throw new Error("the server returned invalid events");
  const all = parsed.data.events ?? [];
  const events = all
    .filter(({ seq }) => seq > sinceSeq)
    .map(({ seq, type, text }) => ({
      seq,
      type: type.slice(0, maxType),
      text: (text ?? "").slice(0, maxUtteranceCharacters).toWellFormed(),
    }))
    .sort((a, b) => a.seq - b.seq)
    // Events beyond the limit are read with the next page.
    .slice(0, limit);
  const status = parsed.data.status?.toLowerCase() ?? "";
  const ended = events.length === 0 && over.has(status) ? `the server reports its session as ${status}` : null;
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

/** Devices with an id or a name, from any list in the response. */
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

/** The server's arguments for the source: a device is a microphone, by id if the server lists it, else by name. */
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
