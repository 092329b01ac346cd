// The settings in effect, with the origin of each value. They are changed in parley.toml, not here.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../api/http.ts";
import { visible } from "../chat/markdown.ts";
import { WhenLoaded, useLoad } from "../parts/load.tsx";

export function Settings(): JSX.Element {
  const loaded = useLoad(() => call<"settingsGet">("GET", "/api/settings"), []);
  const text = useSignal("");
  const changedOnly = useSignal(false);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Settings</h1>
        <input
          type="search"
          data-search
          aria-label="Search settings"
          placeholder="Search settings"
          onInput={(event) => (text.value = event.currentTarget.value.toLowerCase())}
        />
        <label class="row">
          <input type="checkbox" onChange={(event) => (changedOnly.value = event.currentTarget.checked)} /> not the
          default
        </label>
      </header>
      <p class="muted">
        Read-only. Change <code>parley.toml</code>, check it with <code>npx parley config check</code>, and restart.
      </p>
      <WhenLoaded state={loaded}>
        {({ settings, problems }) => {
          const shown = settings.filter(
            ({ key, origin }) => key.toLowerCase().includes(text.value) && (!changedOnly.value || origin !== "default"),
          );
          return (
            <>
              {problems.length > 0 && (
                <section aria-label="Problems">
                  <h2>Problems</h2>
                  <ul class="lines">
                    {problems.map((problem) => (
                      <li key={problem} class="bad">
                        {visible(problem)}
                      </li>
                    ))}
                  </ul>
                </section>
              )}
              <div class="table-frame stacks" role="region" aria-label="Settings" tabIndex={0}>
                <table>
                  <thead>
                    <tr>
                      <th>Key</th>
                      <th>Value</th>
                      <th>Origin</th>
                    </tr>
                  </thead>
                  <tbody>
                    {shown.map(({ key, value, origin }) => (
                      <tr key={key}>
                        <td class="setting-key">
                          <code>{key}</code>
                        </td>
                        <td data-label="Value">
                          <code>{JSON.stringify(value)}</code>
                        </td>
                        <td
                          data-label="Origin"
                          class={origin === "default" ? "setting-origin muted" : "setting-origin"}
                        >
                          {origin}
                        </td>
                      </tr>
                    ))}
                    {shown.length === 0 && (
                      <tr>
                        <td colSpan={3} class="muted">
                          No setting matches. Clear the search to see all of them.
                        </td>
                      </tr>
                    )}
                  </tbody>
                </table>
              </div>
            </>
          );
        }}
      </WhenLoaded>
    </div>
  );
}
