// Operations on people: who may write to the agent, beyond the lists of parley.toml.
import { z } from "zod";
import { contactRoles } from "../principals.ts";
import { contactList, ContactSchema, pairingApprove, pairingList } from "../store/contacts.ts";
import { OwnLimitsSchema, personLimitsList, personLimitsSet, PersonLimitsSchema } from "../store/person-limits.ts";
import { operation } from "./operation.ts";

const PersonRef = z.strictObject({
  channel: z.string().min(1),
  account: z.string().min(1),
  /** Their id on the platform. */
  contactId: z.string().min(1).max(512),
});

export const peopleList = operation({
  name: "people.list",
  summary: "People who were admitted or blocked, and people who asked for access",
  role: "owner",
  input: z.strictObject({}),
  output: contactList.output.extend({ pairings: pairingList.output.shape.pairings }),
  http: { method: "GET", path: "/api/people", answers: { 200: "Contacts and open pairing requests" } },
  slash: [{ form: "/people" }],
});

export const peopleLimits = operation({
  name: "people.limits",
  summary: "Limits of people, and what those whom a limit applies to have used today",
  role: "owner",
  input: z.strictObject({}),
  output: personLimitsList.output.extend({
    /** By role; 0: no limit. `token`: named callers of the API. */
    roles: z.object({
      owner: PersonLimitsSchema,
      user: PersonLimitsSchema,
      guest: PersonLimitsSchema,
      token: PersonLimitsSchema,
    }),
  }),
  http: { method: "GET", path: "/api/people/limits", answers: { 200: "The limits of roles and of people" } },
});

export const peopleLimit = operation({
  name: "people.limit",
  summary: "Change the limits of one person; null: those of their role",
  role: "owner",
  audit: ["messagesPerMinute", "turnsPerDay", "usdPerDay", "channel", "account", "contactId"],
  input: PersonRef.extend(OwnLimitsSchema.partial().shape),
  output: personLimitsSet.output.extend({
    /** What limits the effect; null: nothing. */
    note: z.string().nullable(),
  }),
  http: { method: "POST", path: "/api/people/limit", answers: { 200: "The person's own limits" } },
});

export const peopleSet = operation({
  name: "people.set",
  summary: "Admit a person with a role, change it, or block them",
  role: "owner",
  audit: ["channel", "account", "contactId", "role"],
  input: PersonRef.extend({
    role: z.enum([...contactRoles, "blocked"]),
    name: z.string().min(1).max(200).optional(),
  }),
  output: z.object({
    contact: ContactSchema,
    /** What limits the effect: a list in parley.toml that names the person; null: nothing. */
    note: z.string().nullable(),
  }),
  http: { method: "POST", path: "/api/people", answers: { 200: "The contact" } },
});

export const peopleRemove = operation({
  name: "people.remove",
  summary: "Forget a person: they are unknown again",
  role: "owner",
  audit: ["channel", "account", "contactId"],
  input: PersonRef,
  output: z.object({ removed: z.boolean() }),
  http: { method: "POST", path: "/api/people/remove", answers: { 200: "Whether the person was known" } },
});

export const peoplePair = operation({
  name: "people.pair",
  summary: "Admit the person who received this code",
  role: "owner",
  audit: ["role"],
  input: z.strictObject({ code: z.string().min(4).max(64), role: z.enum(contactRoles).default("user") }),
  output: pairingApprove.output,
  slash: [{ form: "/pair", arguments: [{ field: "code" }, { field: "role", optional: true }] }],
});

export const peopleLink = operation({
  name: "people.link",
  summary: "Link the chat that received this code to a conversation: one person, one session",
  role: "user",
  audit: ["session", "role"],
  input: z.strictObject({
    code: z.string().min(4).max(64),
    /** The person's conversation, by session id or key. */
    session: z.string().min(1).max(600),
    /** Of the linked person; only for the API: a person links themselves with their own role. */
    role: z.enum(contactRoles).default("user"),
  }),
  output: z.object({ contact: ContactSchema }),
  session: "session",
  http: {
    method: "POST",
    path: "/api/people/link",
    answers: { 200: "The linked contact", 404: "not_found: no open request has the code, or there is no such session" },
  },
  slash: [{ form: "/link", arguments: [{ field: "code" }], condition: "in a conversation with one person" }],
});
