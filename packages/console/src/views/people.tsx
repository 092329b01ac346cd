// People: requests for access, and who may write with which role.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { visible } from "../chat/markdown.ts";
import { clock } from "../parts/format.ts";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction, toast } from "../parts/toast.tsx";

const everyMs = 8_000;
const roles = ["owner", "user", "guest", "blocked"] as const;

type Contact = Result<"peopleList">["contacts"][number];

export function People(): JSX.Element {
  const people = useLoad(() => call<"peopleList">("GET", "/api/people"), [], everyMs);
  return (
    <div class="page">
      <header class="page-head">
        <h1>People</h1>
      </header>
      <section>
        <h2>Requests for access</h2>
        <Admit done={() => void people.reload()} />
        <WhenLoaded state={people}>
          {({ pairings }) => (
            <ul class="lines">
              {pairings.map(({ channel, account, contactId, name, expiresAt }) => (
                <li key={`${channel}${account}${contactId}`} class="row">
                  <bdi>{visible(name ?? contactId)}</bdi>
                  <span class="muted">
                    {channel}:{account} · until {clock(expiresAt, new Date())}
                  </span>
                </li>
              ))}
              {pairings.length === 0 && (
                <li class="muted">
                  No open request. A new person who writes to a channel with pairing receives a code; they tell it to
                  you.
                </li>
              )}
            </ul>
          )}
        </WhenLoaded>
      </section>
      <section>
        <h2>Admitted people</h2>
        <WhenLoaded state={people}>
          {(found) =>
            found.contacts.length === 0 ? (
              <EmptyState icon="people" title="Nobody was admitted by pairing">
                <p>
                  People who are listed in <code>owners</code> or <code>allow_from</code> of an account need no pairing
                  and are not listed here.
                </p>
              </EmptyState>
            ) : (
              <ul class="lines">
                {found.contacts.map((contact) => (
                  <Line
                    key={`${contact.channel}${contact.account}${contact.contactId}`}
                    contact={contact}
                    changed={people.reload}
                  />
                ))}
              </ul>
            )
          }
        </WhenLoaded>
      </section>
    </div>
  );
}

function Admit({ done }: { done: () => void }): JSX.Element {
  const role = useSignal("user");
  const session = useSignal("");
  const conversations = useLoad(
    () => call<"sessionsList">("GET", "/api/sessions", { query: { status: "active", limit: 100 } }),
    [],
  );
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const code = new FormData(form).get("code");
    const body = { code: typeof code === "string" ? code.trim() : "", role: role.value };
    const linked = { ...body, session: session.value };
    const admit = () =>
      session.value === ""
        ? call<"pairingsApprove">("POST", "/api/pairings/approve", { body })
        : call<"peopleLink">("POST", "/api/people/link", { body: linked });
    if (await runAction(admit, session.value === "" ? "Admitted" : "Linked: their messages join that conversation")) {
      form.reset();
      session.value = "";
      done();
    }
  };
  return (
    <form class="row" onSubmit={(event) => void submit(event)}>
      <input
        name="code"
        type="text"
        aria-label="Code"
        placeholder="Code that the person received"
        required
        minLength={4}
      />
      <select aria-label="Role" value={role.value} onChange={(event) => (role.value = event.currentTarget.value)}>
        <option value="user">user: own conversations and workspace</option>
        <option value="guest">guest: no files and commands</option>
        <option value="owner">owner: everything you can do</option>
      </select>
      <select
        aria-label="Conversation"
        value={session.value}
        onChange={(event) => (session.value = event.currentTarget.value)}
      >
        <option value="">a new person</option>
        {conversations.data.value?.sessions.map(({ sessionId, title, key }) => (
          <option key={sessionId} value={sessionId}>
            the person of: {visible(title ?? key)}
          </option>
        ))}
      </select>
      <button type="submit" class="button primary">
        {session.value === "" ? "Admit" : "Link"}
      </button>
    </form>
  );
}

function Line({ contact, changed }: { contact: Contact; changed: () => Promise<void> }): JSX.Element {
  const { channel, account, contactId, name, role, route = null } = contact;
  const change = async (wanted: string) => {
    const body = { channel, account, contactId, role: wanted };
    await runAction(async () => {
      const { note } = await call<"peopleSet">("POST", "/api/people", { body });
      toast(note ?? "Changed");
    });
    await changed();
  };
  const remove = async () => {
    const body = { channel, account, contactId };
    if (!window.confirm(`Forget ${name ?? contactId}? They are unknown again; their conversations are kept.`)) return;
    await runAction(() => call<"peopleRemove">("POST", "/api/people/remove", { body }), "Removed");
    await changed();
  };
  return (
    <li class="row" data-row tabIndex={-1}>
      <bdi class="grow">{visible(name ?? contactId)}</bdi>
      <span class="muted">
        {channel}:{account} · {visible(contactId)}
        {route !== null && ` · joins ${visible(route)}`}
      </span>
      <select
        aria-label={`Role of ${name ?? contactId}`}
        value={role}
        onChange={(event) => void change(event.currentTarget.value)}
      >
        {roles.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <button
        type="button"
        class="button danger"
        aria-label={`Remove ${name ?? contactId}`}
        onClick={() => void remove()}
      >
        Remove
      </button>
    </li>
  );
}
