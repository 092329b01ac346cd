// Describes notifications of Alertmanager, and finds what is the same in a repeated one. Pure.
import { parseJson } from "@parley/kit";
import { Fields, labelled, lines, someOf, words } from "./fields.ts";

/** A description; null for a body without alerts. */
export function alertmanagerText(body: Fields): string | null {
  const alerts = body.list("alerts");
  if (alerts.length === 0) return null;
  const group = body.entries("groupLabels").map(([name, value]) => `${name}=${value}`);
  return lines(
    words("Alertmanager:", body.line("status"), `(${alerts.length})`, group.join(" ")),
    someOf(alerts.map(alertText)),
    labelled("alerts left out", body.line("truncatedAlerts").replace(/^0$/, "")),
    body.line("externalURL"),
  );
}

function alertText(alert: Fields): string {
  const labels = alert.entries("labels").map(([name, value]) => `${name}=${value}`);
  const ends = alert.line("endsAt");
  return lines(
    `- ${words(alert.line("status"), ...labels)}`,
    [alert.line("annotations.summary", "annotations.message"), alert.text("annotations.description")]
      .filter((text) => text !== "")
      .map((text) => `  ${text}`),
    labelled("  since", alert.line("startsAt")),
    alert.line("status") === "resolved" ? labelled("  until", ends) : "",
    alert.line("generatorURL") === "" ? "" : `  ${alert.line("generatorURL")}`,
  );
}

/** The alerts of a notification with their states: the same for a repetition, and for a reminder without a change. */
export function alertsKey(rawBody: string): string {
  const body = new Fields(parseJson(rawBody));
  const alerts = body
    .list("alerts")
    .map((alert) => words(alert.line("fingerprint"), alert.line("status"), alert.line("startsAt")))
    .toSorted();
  return alerts.length === 0 ? rawBody : JSON.stringify([body.line("groupKey"), body.line("receiver"), alerts]);
}
