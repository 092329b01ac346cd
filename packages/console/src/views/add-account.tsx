// Adds an account on a chat platform while the cluster runs. Secrets go to the gateway once and are never shown.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { Markdown } from "../chat/text.tsx";
import { WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction, toast } from "../parts/toast.tsx";
import { bodyOf } from "./account-form.ts";

type Kind = Result<"channelsKinds">["kinds"][number];

export function AddAccount({ added }: { added: () => void }): JSX.Element {
  const kinds = useLoad(() => call<"channelsKinds">("GET", "/api/channel-kinds"), []);
  const chosen = useSignal("");
  return (
    <WhenLoaded state={kinds}>
      {(loaded) => {
        const kind = loaded.kinds.find(({ name }) => name === chosen.value) ?? loaded.kinds[0];
        if (kind === undefined) return <p>This gateway has no channels.</p>;
        return (
          <section class="card">
            <label class="row">
              Platform{" "}
              <select value={kind.name} onChange={(event) => (chosen.value = event.currentTarget.value)}>
                {loaded.kinds.map(({ name, title }) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
            <ol>
              {kind.setUp.map((step) => (
                <li key={step}>
                  <Markdown text={step} />
                </li>
              ))}
            </ol>
            <Form key={kind.name} kind={kind} added={added} />
          </section>
        );
      }}
    </WhenLoaded>
  );
}

function Form({ kind, added }: { kind: Kind; added: () => void }): JSX.Element {
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const done = await runAction(async () => {
      const body = bodyOf(kind.name, new FormData(form));
      const { channel, account, as } = await call<"channelsAdd">("POST", "/api/channels", { body });
      toast(`${channel}:${account} is added${as === null ? "" : `, as ${as}`}`);
    });
    if (done) added();
  };
  const owners = kind.optional.includes("owners");
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <label>
        Name of the account
        <input type="text" name="account" value="main" required />
      </label>
      {kind.secrets.map(({ setting, purpose }) => (
        <label key={setting}>
          Secret: {purpose}
          <input type="password" name={`secret:${setting}`} autocomplete="off" />
        </label>
      ))}
      {kind.required.map((setting) => (
        <label key={setting}>
          {setting}
          <input type="text" name={`setting:${setting}`} required />
        </label>
      ))}
      {owners && (
        <label>
          Your own id there, so that you are the owner (or leave it out and pair)
          <input type="text" name="setting:owners" />
        </label>
      )}
      <label>
        Further settings, one a line: <code>name = value</code>, as in parley.toml
        <textarea name="further" rows={2} placeholder={kind.optional.slice(0, 6).join(", ")} />
      </label>
      <button type="submit" class="button primary">
        Check and add
      </button>
    </form>
  );
}
